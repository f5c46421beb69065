// Command fakeservice stands in for every service in the tests of the supervisor: it is built once and copied under the
// services' names. It notes what happens to it in the directory FAKE_DIR, and does as files there tell it.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/factstream/factstream/shared/lifeline"
)

func main() {
	name, dir := filepath.Base(os.Args[0]), os.Getenv("FAKE_DIR")
	told := func(what string) bool {
		_, err := os.Stat(filepath.Join(dir, name+"."+what))
		return err == nil
	}
	note := func(format string, args ...any) {
		file, err := os.OpenFile(filepath.Join(dir, "events"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer file.Close() //nolint:errcheck // a test reads what came through
		_, _ = fmt.Fprintf(file, format+"\n", args...)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".env"), []byte(strings.Join(os.Environ(), "\n")), 0o600); err != nil {
		panic(err)
	}
	note("start %s %d %s", name, os.Getpid(), os.Getenv("ON_RESTART"))
	fmt.Fprintf(os.Stderr, `{"level":"info","message":"an info line of %s with %s"}`+"\n", name, os.Getenv("NATS_URL"))
	fmt.Fprintf(os.Stderr, `{"level":"warn","message":"a warning of %s"}`+"\n", name)
	if told("crash") {
		panic("crash of " + name)
	}
	ctx, stop := lifeline.Context(context.Background())
	defer stop()
	if told("deaf") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		select {}
	}
	if name == "gateway" {
		go func() {
			err := http.ListenAndServe(os.Getenv("FACTSTREAM_HTTP"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprint(w, `{"ready":true,"model":{"engine":"extractive","hint":"a hint"},"provider":{"mode":"replay"}}`)
			}))
			panic(err)
		}()
	}
	<-ctx.Done()
	note("stop %s bus=%t", name, busAnswers())
}

func busAnswers() bool {
	u, err := url.Parse(os.Getenv("NATS_URL"))
	if err != nil {
		return false
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
