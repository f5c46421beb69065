// Package api is the HTTP API of the notebook and its page: reads from the projection, writes by appending commands.
package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/factstream/factstream/jetstream/readers"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/services/gateway/web"
	"github.com/factstream/factstream/shared/footprint"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
)

// base is the path of the API.
const base = "/api/v1"

// FileName is the projection's file in the data directory.
const FileName = "notebook.db"

// Times of the HTTP server. There is none for a whole answer: a stream of events goes on as long as somebody listens.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	bodyTimeout   = 30 * time.Second // for 1 MiB at most, from this machine as a rule
	drain         = 5 * time.Second  // for answers under way when the service stops
)

// Options are the times that the environment does not set. Zero values mean the defaults.
type Options struct {
	CommandTimeout time.Duration // how long a write is tried before it is answered as of unknown outcome; notebook.CommandTimeout
	ProjectionWait time.Duration // how long a write waits until reads see it, before it answers all the same; 2 s
	BodyTimeout    time.Duration // how long the body of a request may take to arrive; 30 s
	CommentEvery   time.Duration // between two comments of a stream, so that nothing between takes the connection for dead; 15 s
}

// Server is the gateway.
type Server struct {
	*service.Service
	Projection *projection.Projection

	options  Options
	listener net.Listener
	handler  http.Handler
	models   modelState
	stopping chan struct{} // closed when the server stops: streams end
}

// Parts opens the gateway for service.Main: the projection, and the HTTP server on the configured address.
func Parts(ctx context.Context, s *service.Service) ([]service.Part, error) {
	g, err := Open(ctx, s, Options{})
	if err != nil {
		return nil, err
	}
	return append(g.Parts(), service.Part{Name: "footprint", Run: g.stepBack}), nil
}

// stepBack leaves half of the processors to the other processes as soon as the notebook is there: until then it is folded twice. It is a
// part of the program and not of a Server, whose process may be a test's.
func (s *Server) stepBack(ctx context.Context) error {
	for {
		seq, err := s.Tail.CatchUp(ctx)
		if err == nil {
			err = s.Projection.WaitFor(ctx, seq)
		}
		if err == nil {
			footprint.Take(2)
			<-ctx.Done()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// Open opens the projection in the data directory and listens on the configured address. The parts must be run or Close be called.
func Open(ctx context.Context, s *service.Service, options Options) (*Server, error) {
	dir, err := s.Spool("")
	if err != nil {
		return nil, err
	}
	p, err := projection.Open(ctx, projection.Config{Path: filepath.Join(dir, FileName), JS: s.JS, Artifacts: s.Artifacts, Log: s.Log})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Config.HTTP)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s (FACTSTREAM_HTTP sets another address): %w", s.Config.HTTP, err), p.Close())
	}
	options.CommandTimeout = cmp.Or(options.CommandTimeout, notebook.CommandTimeout)
	options.ProjectionWait = cmp.Or(options.ProjectionWait, projectionWait)
	options.BodyTimeout = cmp.Or(options.BodyTimeout, bodyTimeout)
	options.CommentEvery = cmp.Or(options.CommentEvery, commentEvery)
	g := &Server{Service: s, Projection: p, options: options, listener: listener, stopping: make(chan struct{})}
	g.models.ask = g.askModel
	g.handler = g.routes()
	g.registerMetrics()
	return g, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close closes what Open opened, for who does not run the parts.
func (s *Server) Close() error { return errors.Join(s.listener.Close(), s.Projection.Close()) }

// Parts are the projection with the HTTP server, and the gate that makes consumers for programs which read the stream themselves. They
// close what Open opened when they end.
func (s *Server) Parts() []service.Part {
	return []service.Part{
		{Name: "gateway", Run: s.run},
		{Name: "reader gate", Run: func(ctx context.Context) error { return readers.Serve(ctx, s.NC, s.Log) }},
	}
}

// run serves until ctx ends or the projection fails; answers under way are finished before the projection is closed.
func (s *Server) run(ctx context.Context) error {
	projecting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- s.Projection.Run(projecting) }()
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	go func() { ended <- server.Serve(s.listener) }()

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended: // neither ends by itself
		ended <- nil
	}
	close(s.stopping)
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if server.Shutdown(draining) != nil {
		_ = server.Close() // whoever was slower than that is cut off
	}
	stop()
	for range 2 {
		if e := <-ended; err == nil && !errors.Is(e, http.ErrServerClosed) {
			err = e
		}
	}
	return errors.Join(err, s.Projection.Close())
}

// routes puts everything behind the guard.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	config := huma.DefaultConfig("Factstream", "1")
	config.Info.Description = "A self-hosted research notebook: threads of questions, paid runs, cited facts. Nothing is spent by reading."
	config.DocsPath = ""      // its page loads from elsewhere
	config.SchemasPath = ""   // they are all in the OpenAPI document
	config.CreateHooks = nil  // no $schema beside the data
	config.Transformers = nil //
	config.RejectUnknownQueryParameters = true
	api := humago.New(mux, config)
	s.threadRoutes(api)
	s.runRoutes(api)
	s.factRoutes(api)
	s.questionRoutes(api)
	s.knowledgeRoutes(api)
	s.streamRoutes(api)
	s.settingsRoutes(api)
	s.deadRoutes(api)
	s.healthRoutes(api)
	mux.Handle("GET /metrics", s.Metrics.Handler())
	web.Register(mux, web.Backend{Token: s.Config.Token.Reveal(), Report: s.reportForPage})
	mux.HandleFunc(everythingElse, func(w http.ResponseWriter, r *http.Request) { unknown(mux, w, r) })
	tellNulls(api.OpenAPI().Components.Schemas)
	describe(api.OpenAPI())
	return s.guard(mux)
}

// everythingElse is the pattern of what no other takes.
const everythingElse = "/"

// unknown tells whether it is the path that there is not, or only the method. OPTIONS is answered with the methods that there are; it names no other
// site, since none may use this server from a browser.
func unknown(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := &http.Request{Method: method, Host: r.Host, URL: r.URL}
		if _, pattern := mux.Handler(other); pattern != everythingElse {
			methods = append(methods, method)
		}
	}
	if len(methods) == 0 {
		if web.IsPage(r) {
			web.NotFound(w, "There is no page "+r.URL.Path+".")
			return
		}
		problem(http.StatusNotFound, "not-found", "There is no %s. /openapi.json lists what there is.", r.URL.Path).write(w)
		return
	}
	w.Header().Set("Allow", strings.Join(append(methods, http.MethodOptions), ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	problem(http.StatusMethodNotAllowed, "method-not-allowed", "%s takes %s, not %s. Nothing was changed.", r.URL.Path, strings.Join(methods, ", "), r.Method).write(w)
}

// operation registers one endpoint. Errors of the handler are told as problems.
func operation[I, O any](s *Server, api huma.API, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	// The guard has read the body, in a time of its own. The framework's (5 s) would go on while the handler works: it then ends the context of a
	// command that waits for a slow bus, and breaks the connection for the requests after it.
	op.BodyReadTimeout = -1
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err != nil {
			return nil, s.problemOf(err)
		}
		return out, nil
	})
}

// op describes an endpoint by method, path (below the base), id and summary, with the errors that it has of its own; describe adds the others.
func op(method, path, id, summary string, errs ...int) huma.Operation {
	return huma.Operation{Method: method, Path: base + path, OperationID: id, Summary: summary, Errors: errs}
}

// Body is an answer with a JSON body.
type Body[T any] struct{ Body T }

func body[T any](v T) *Body[T] { return &Body[T]{Body: v} }
