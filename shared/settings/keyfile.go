package settings

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrKeyFile: the key file can be read by others, or does not hold a key.
	ErrKeyFile = errors.New("the key file is not usable")
	// ErrUnreadable: a saved key cannot be decrypted: the key file is gone, or is not the one that it was saved with. It is
	// never the same as "no key is saved".
	ErrUnreadable = errors.New("the saved key cannot be read")
)

// box is an encrypted key as it is kept: AES-256-GCM, a random nonce of 12 bytes before the ciphertext.
type box []byte

// keyFile is the file of the key that saved keys are encrypted with: 64 hexadecimal digits.
type keyFile string

// seal encrypts text; name is bound to it, so that one saved key cannot be passed off as another. The key file is made
// if there is none.
func (f keyFile) seal(name, text string) (box, error) {
	gcm, err := f.cipher()
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.create(); err != nil {
			return nil, err
		}
		gcm, err = f.cipher()
	}
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	_, _ = rand.Read(nonce) // never fails, by its contract
	return gcm.Seal(nonce, nonce, []byte(text), []byte(name)), nil
}

// open decrypts what seal returned for the same name. A missing file is ErrUnreadable: a new key would not fit.
func (f keyFile) open(name string, sealed box) (string, error) {
	gcm, err := f.cipher()
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s does not exist", ErrUnreadable, string(f))
	}
	if err != nil {
		return "", err
	}
	if len(sealed) < gcm.NonceSize() {
		return "", fmt.Errorf("%w: it is damaged", ErrUnreadable)
	}
	text, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], []byte(name))
	if err != nil {
		return "", fmt.Errorf("%w: it was saved with another key file than %s, or is damaged", ErrUnreadable, string(f))
	}
	return string(text), nil
}

func (f keyFile) cipher() (cipher.AEAD, error) {
	key, err := f.read()
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	return cipher.NewGCM(block)
}

func (f keyFile) read() ([]byte, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s has mode %04o and others can read it; make it 0600", ErrKeyFile, string(f), mode)
	}
	text := make([]byte, 128)
	n, _ := file.Read(text)
	key, err := hex.DecodeString(strings.TrimSpace(string(text[:n])))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("%w: %s does not hold a key of 64 hexadecimal digits", ErrKeyFile, string(f))
	}
	return key, nil
}

// create makes the file with a random key. Of several processes that try at once one wins, and all use its key: a link,
// unlike a rename, never replaces a file that is there.
func (f keyFile) create() error {
	dir := filepath.Dir(string(f))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	draft, err := os.CreateTemp(dir, ".secret-*") // mode 0600
	if err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	defer os.Remove(draft.Name()) //nolint:errcheck // a draft is of no use to anyone
	_, err = draft.WriteString(rand32() + "\n")
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	if err := os.Link(draft.Name(), string(f)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the key file: %w", err)
	}
	// The name must outlive a power failure, else what is encrypted with the key is lost.
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	return nil
}

func rand32() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, by its contract
	return hex.EncodeToString(key)
}
