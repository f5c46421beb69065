package backup

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/factstream/factstream/jetstream/projector"
)

// known says whether an error is one of those that a reader of any file may give.
func known(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotBackup) || errors.Is(err, ErrNewer)
}

func FuzzManifest(f *testing.F) {
	sum := strings.Repeat("ab", 32)
	f.Add([]byte(`{"format":"factstream-backup","version":1,"members":[{"name":"notebook.jsonl","size":0,"sha256":"` + sum + `"}]}`))
	f.Add([]byte(`{"format":"factstream-backup","version":1,"members":[{"name":"artifacts/t/` + sum + `","size":3,"sha256":"` + sum + `"},{"name":"../x"}]}`))
	f.Add([]byte(`{"format":"factstream-backup","version":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := parseManifest(body)
		if err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		for _, member := range m.Members {
			if strings.Contains(member.Name, "..") || strings.HasPrefix(member.Name, "/") || strings.Contains(member.Name, `\`) {
				t.Fatalf("a member %q would be unpacked elsewhere", member.Name)
			}
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"seq":1,"subject":"run.completed.t.r.0","stored":"2026-01-02T03:04:05Z","body":"{}"}` + "\n"))
	f.Add([]byte(`{"seq":2,"subject":"ext.a.t.r.0","stored":"2026-01-02T03:04:05Z","header":{"Factstream-Original-Seq":["9"]},"body_base64":"/w=="}`))
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var messages []projector.Message
		err := eachMessage(bytes.NewReader(body), func(m projector.Message) error {
			messages = append(messages, m)
			return nil
		})
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		// What was read is written to the same again.
		var out bytes.Buffer
		lines := newLines(&out)
		for _, m := range messages {
			l := lineOf(m)
			l.Stored = m.Time
			if err := lines.Encode(l); err != nil {
				t.Fatal(err)
			}
		}
		var again []projector.Message
		if err := eachMessage(&out, func(m projector.Message) error { again = append(again, m); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(again) != len(messages) {
			t.Fatalf("%d messages became %d", len(messages), len(again))
		}
		for i := range again {
			if again[i].Subject != messages[i].Subject || !bytes.Equal(again[i].Data, messages[i].Data) || again[i].Original != messages[i].Original {
				t.Fatalf("message %d changed", i)
			}
		}
	})
}

func FuzzArchive(f *testing.F) {
	var out bytes.Buffer
	w := &writer{zip: zip.NewWriter(&out), m: Manifest{Format: Format, Version: Version, Created: time.Unix(0, 0).UTC(), LeftOut: leftOut}}
	if err := errors.Join(w.readme(), w.json(memberNotebook, json.RawMessage(`1`)), w.finish()); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, body []byte) {
		archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			return
		}
		if _, err := read(context.Background(), archive.File); err != nil && !known(err) {
			t.Fatal(err)
		}
	})
}

func FuzzRefs(f *testing.F) {
	f.Add("t", []byte(`{"data":{"report":{"ref":"t/`+strings.Repeat("ab", 32)+`","sha256":"`+strings.Repeat("ab", 32)+`","size":3}}}`))
	f.Fuzz(func(t *testing.T, thread string, body []byte) {
		for _, ref := range refsOf(thread, body) {
			if !ref.Valid(thread) {
				t.Fatalf("%+v is no reference of %q", ref, thread)
			}
		}
	})
}
