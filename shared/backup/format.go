// Package backup copies a whole notebook into one file while it is in use, puts such a file into an empty place, and says in what a
// notebook and a file differ.
//
// The file is a zip archive that any tool opens. Its members are notebook.jsonl (every message of the stream, one JSON object per line),
// artifacts/<thread>/<sha256>, names.jsonl (names of artifacts), trail.jsonl, settings.json, keys.json if keys were asked for, README.txt, and
// manifest.json, which names and hashes all the others.
package backup

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/artifact"
)

// Format and Version are those that this program writes; it reads all versions up to this one.
const (
	Format  = "factstream-backup"
	Version = 1
)

// The members of the archive.
const (
	memberNotebook  = "notebook.jsonl"
	memberArtifacts = "artifacts/" // and <thread>/<sha256>
	memberNames     = "names.jsonl"
	memberTrail     = "trail.jsonl"
	memberSettings  = "settings.json"
	memberKeys      = "keys.json"
	memberReadme    = "README.txt"
	memberManifest  = "manifest.json"
)

// Limits of what is read from a file that may be anything.
const (
	maxManifest = 256 << 20
	maxLine     = 160 << 20 // a message is at most 64 MiB, its body at worst twice as long in JSON or base64
	maxSettings = 1 << 20
)

// Errors of reading a file.
var (
	// ErrNotBackup: the file is no backup at all.
	ErrNotBackup = errors.New("not a Factstream backup")
	// ErrDamaged: a part of the file is missing or is not what was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNewer: a later version of this program wrote the file.
	ErrNewer = errors.New("the backup was written by a newer version of Factstream")
)

// Manifest says what a backup is of and what is in it.
type Manifest struct {
	Format        string    `json:"format"`
	Version       int       `json:"version"`
	Created       time.Time `json:"created"`        // when the backup was begun
	StreamCreated time.Time `json:"stream_created"` // when the stream NOTEBOOK was
	LastSequence  uint64    `json:"last_sequence"`  // the notebook is whole up to it, and nothing behind it is in the file
	Counts        Counts    `json:"counts"`
	Keys          bool      `json:"keys"`              // API keys are in the file, in clear text
	Missing       []string  `json:"missing,omitempty"` // artifacts that events name but that were missing or corrupt
	LeftOut       []string  `json:"left_out"`          // what is not in the file, for people
	Members       []Member  `json:"members"`
}

// Counts of what is in a backup.
type Counts struct {
	Events        int64 `json:"events"`
	Threads       int64 `json:"threads"`         // deleted ones included
	Deleted       int64 `json:"deleted_threads"` // of which only the tombstone is there
	Artifacts     int64 `json:"artifacts"`
	ArtifactBytes int64 `json:"artifact_bytes"`
	Names         int64 `json:"names"`
	Trail         int64 `json:"trail"`
}

// Member is one file of the archive.
type Member struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes, not compressed
	SHA256 string `json:"sha256"` // 64 hexadecimal digits, lower case
}

// leftOut is said in every manifest.
var leftOut = []string{
	"replies of models and vectors: caches, made again when they are needed",
	"progress and leases: true for the moment only",
	"dead letters, and what was passed: what no worker could decode is in the notebook and is found again",
	"notebook.db: made again from the notebook",
	"unfinished provider calls in the spool, logs, and the passwords of the bus",
}

const leftOutKeys = "API keys: ask for them with --with-keys"

const readme = `A backup of a Factstream notebook.

manifest.json    what it is of, what was left out, and the SHA-256 of every other file
notebook.jsonl   every event: its sequence, subject, time of storing, headers and body (body_base64 when it is not text)
artifacts/       reports, page texts and raw answers, under <thread>/<SHA-256 of the content>
names.jsonl      the attempts whose raw answers those are
trail.jsonl      what the provider said lately, event by event
settings.json    what was set
keys.json        API keys in clear text; only if they were asked for

"factstream restore FILE" puts it into an empty place; "factstream verify FILE" compares it with a notebook.
`

// parseManifest reads the manifest and checks all of it that needs no other member.
func parseManifest(body []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: its manifest cannot be read: %w", ErrDamaged, err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("%w: its manifest is of the format %q", ErrNotBackup, m.Format)
	}
	if m.Version > Version {
		return m, fmt.Errorf("%w: its format is version %d, this program knows %d", ErrNewer, m.Version, Version)
	}
	if m.Version < 1 {
		return m, fmt.Errorf("%w: its format is version %d", ErrDamaged, m.Version)
	}
	seen := map[string]bool{}
	for _, member := range m.Members {
		if !validMember(member.Name) || seen[member.Name] || member.Size < 0 || !isSHA256(member.SHA256) {
			return m, fmt.Errorf("%w: its manifest names a member %q of %d bytes, hash %q", ErrDamaged, member.Name, member.Size, member.SHA256)
		}
		seen[member.Name] = true
		if ref, ok := refOfMember(member); ok && ref.SHA256 != member.SHA256 {
			return m, fmt.Errorf("%w: the hash of %s is not its name", ErrDamaged, member.Name)
		}
	}
	if !seen[memberNotebook] {
		return m, fmt.Errorf("%w: %s is missing", ErrDamaged, memberNotebook)
	}
	return m, nil
}

var fixedMembers = []string{memberNotebook, memberNames, memberTrail, memberSettings, memberKeys, memberReadme}

func validMember(name string) bool {
	if slices.Contains(fixedMembers, name) {
		return true
	}
	_, ok := refOfMember(Member{Name: name})
	return ok
}

// refOfMember gives the artifact that a member holds.
func refOfMember(m Member) (artifact.Ref, bool) {
	name, ok := strings.CutPrefix(m.Name, memberArtifacts)
	thread, sum, found := strings.Cut(name, "/")
	ref := artifact.Ref{Ref: name, SHA256: sum, Size: m.Size}
	return ref, ok && found && !strings.ContainsAny(thread, `\:`) && !strings.HasPrefix(thread, ".") && ref.Valid(thread)
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && s == strings.ToLower(s)
}

// line is a message in notebook.jsonl or trail.jsonl.
type line struct {
	Seq     uint64      `json:"seq,omitempty"`
	Subject string      `json:"subject"`
	Stored  time.Time   `json:"stored"`
	Header  nats.Header `json:"header,omitempty"`
	Body    string      `json:"body,omitempty"`
	Base64  []byte      `json:"body_base64,omitempty"` // in place of Body when that is not valid UTF-8
}

func lineOf(m projector.Message) line {
	l := line{Seq: m.Seq, Subject: m.Subject, Stored: m.Time.UTC(), Header: m.Header}
	if utf8.Valid(m.Data) {
		l.Body = string(m.Data)
	} else {
		l.Base64 = m.Data
	}
	return l
}

func (l line) message() projector.Message {
	m := projector.Message{Subject: l.Subject, Header: l.Header, Data: []byte(l.Body), Seq: l.Seq, Time: l.Stored}
	if len(l.Base64) > 0 {
		m.Data = l.Base64
	}
	m.Original, _ = original(l.Header, l.Seq, l.Stored)
	return m
}

// eachLine reads JSON lines into values of T. Its errors wrap ErrDamaged, but for those of do.
func eachLine[T any](name string, r io.Reader, do func(T) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		var value T
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("%w: %s, line %d: %w", ErrDamaged, name, n, err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			return fmt.Errorf("%w: %s, line %d: more than one value", ErrDamaged, name, n)
		}
		if err := do(value); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %s, after line %d: %w", ErrDamaged, name, n, err)
	}
	return nil
}

// eachMessage reads notebook.jsonl: sequences ascend, first ones too.
func eachMessage(r io.Reader, do func(projector.Message) error) error {
	var seq, first uint64
	return eachLine(memberNotebook, r, func(l line) error {
		m := l.message()
		if l.Seq <= seq || m.Original <= first {
			return fmt.Errorf("%w: %s: sequence %d follows %d", ErrDamaged, memberNotebook, l.Seq, seq)
		}
		if strings.Count(l.Subject, ".") != 4 || strings.ContainsAny(l.Subject, "*> \t\r\n") || l.Stored.IsZero() {
			return fmt.Errorf("%w: %s: sequence %d has the subject %q and the time %v", ErrDamaged, memberNotebook, l.Seq, l.Subject, l.Stored)
		}
		seq, first = l.Seq, m.Original
		return do(m)
	})
}
