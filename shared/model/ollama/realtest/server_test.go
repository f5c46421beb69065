//go:build ollama && linux

package realtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model/ollama/realtest/tiny"
)

// program is the Ollama server that is tested.
var program = os.Getenv("OLLAMA_REAL")

// shared is the server of all tests that change nothing about it and need no settings of their own.
var shared *server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if program == "" {
			fmt.Fprintln(os.Stderr, "OLLAMA_REAL is not set: run `make test-ollama`, or give it the path that `scripts/ollama-up --build` prints")
			return 1
		}
		dir, err := os.MkdirTemp("", "factstream-ollama-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if shared, err = serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.kill()
		return m.Run()
	}())
}

// server is a process of the real Ollama with all tiny models, each under its own name; the one of nomic's architecture also as
// nomic-embed-text, since prefixes go by the name.
type server struct {
	url    *url.URL
	client *api.Client
	cmd    *exec.Cmd
	exited chan struct{}
}

// own starts a server with settings of its own ("OLLAMA_MAX_QUEUE=1") until the test ends.
func own(t *testing.T, settings ...string) *server {
	t.Helper()
	s, err := serve(t.TempDir(), settings...)
	require.NoError(t, err)
	t.Cleanup(s.kill)
	return s
}

func serve(dir string, settings ...string) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s := &server{url: &url.URL{Scheme: "http", Host: address}, cmd: exec.Command(program, "serve"), exited: make(chan struct{})}
	s.client = api.NewClient(s.url, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	s.cmd.Env = append([]string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "OLLAMA_HOST=" + address, "OLLAMA_MODELS=" + filepath.Join(dir, "models"),
		"OLLAMA_NUM_PARALLEL=1", "OLLAMA_MAX_LOADED_MODELS=8",
	}, settings...)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	// A group with the processes that run the models; it ends with the test's process too, however that ends, for which the thread
	// that started it must live as long.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(s.exited)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // it is killed: that is its end
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = tiny.Await(ctx, s.client)
	for _, name := range tiny.Names() {
		if err == nil {
			err = tiny.Install(ctx, s.client, name, name, 1)
		}
	}
	if err == nil {
		err = tiny.Install(ctx, s.client, tiny.Nomic, "nomic-embed-text", 1)
	}
	if err != nil {
		s.kill()
		said, _ := os.ReadFile(out.Name())
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	return s, nil
}

// kill ends the server and what runs its models, and returns when it is gone. It may be called again.
func (s *server) kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // gone already: as wanted
	<-s.exited
}

// runners are the process ids of the programs that run models, one for each that is loaded.
func (s *server) runners(t *testing.T) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	var pids []int
	for _, path := range stats {
		if f := fields(path); f != nil && f[1] == strconv.Itoa(s.cmd.Process.Pid) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// worked is the processor time that a process has used, in the kernel's ticks.
func worked(pid int) string {
	f := fields(fmt.Sprintf("/proc/%d/stat", pid))
	if f == nil {
		return "gone"
	}
	return f[11] + "+" + f[12]
}

// fields of a process's stat after its name, which may hold anything: state, parent, ... It is nil when the process is gone.
func fields(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// tap stands between an engine and a server, passes everything on unchanged, and tells what it sees.
type tap struct {
	http    *httptest.Server
	started chan struct{} // gets a value when the first bytes of a chat's answer have gone to the engine

	mu    sync.Mutex
	chats []map[string]json.RawMessage // requests, by field
}

func tapped(t *testing.T, s *server) *tap {
	t.Helper()
	p := &tap{started: make(chan struct{}, 100)}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(s.url) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == "/api/chat" {
				r.Body = &announced{ReadCloser: r.Body, started: p.started}
			}
			return nil
		},
	}
	p.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/chat" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the engine is gone
			}
			var call map[string]json.RawMessage
			if json.Unmarshal(body, &call) == nil {
				p.mu.Lock()
				p.chats = append(p.chats, call)
				p.mu.Unlock()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r)
	}))
	p.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.http.Start()
	t.Cleanup(func() {
		p.http.CloseClientConnections()
		p.http.Close()
		transport.CloseIdleConnections()
	})
	return p
}

// announced tells of the second read: what the first one gave has been passed on by then.
type announced struct {
	io.ReadCloser
	started chan<- struct{}
	reads   int
}

func (a *announced) Read(p []byte) (int, error) {
	if a.reads++; a.reads == 2 {
		a.started <- struct{}{}
	}
	return a.ReadCloser.Read(p)
}

func (p *tap) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.started:
	case <-time.After(time.Minute):
		t.Fatal("no answer began")
	}
}

func (p *tap) requests() []map[string]json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]map[string]json.RawMessage(nil), p.chats...)
}
