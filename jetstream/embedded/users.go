package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/factstream/factstream/jetstream/readers"
)

// CredentialsFile and ReaderCredentialsFile name the files below a data
// directory that hold "user:password"; they are made at the first start, with
// mode 0600.
func CredentialsFile(dir string) string       { return credentialsOf(dir, readers.ServiceUser) }
func ReaderCredentialsFile(dir string) string { return credentialsOf(dir, readers.ReaderUser) }

func credentialsOf(dir, user string) string { return filepath.Join(dir, "credentials", user) }

// routeUser is the name that the servers of a cluster have for each other.
const routeUser = "route"

type credentials struct{ service, reader, route string } // passwords

// makeCredentials makes the files of credentials that are missing, those for the
// routes too.
func makeCredentials(dir string) error {
	if _, _, err := loadCredentials(dir); err != nil {
		return err
	}
	_, err := loadRoutePassword(dir)
	return err
}

func loadRoutePassword(dir string) (string, error) {
	return loadPassword(credentialsOf(dir, routeUser), routeUser)
}

func loadCredentials(dir string) (service, reader string, err error) {
	if err := os.MkdirAll(filepath.Join(dir, "credentials"), 0o700); err != nil {
		return "", "", fmt.Errorf("make the folder of credentials: %w", err)
	}
	if service, err = loadPassword(CredentialsFile(dir), readers.ServiceUser); err != nil {
		return "", "", err
	}
	reader, err = loadPassword(ReaderCredentialsFile(dir), readers.ReaderUser)
	return service, reader, err
}

// loadPassword reads the password of user from path, or makes one.
func loadPassword(path, user string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		password := rand.Text() // 130 bits
		return password, writeDurably(path, user+":"+password+"\n")
	}
	if err != nil {
		return "", fmt.Errorf("read the credentials of %s: %w", user, err)
	}
	name, password, ok := strings.Cut(strings.TrimSpace(string(text)), ":")
	if !ok || name != user || !plain(password) {
		return "", fmt.Errorf("%s does not hold %q and a password of letters and digits; remove it to have a new one made", path, user+":")
	}
	return password, nil
}

// plain tells whether a password can be written into the server's configuration as
// it is.
func plain(password string) bool {
	return password != "" && !strings.ContainsFunc(password, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
