// Package telemetry ties together what several processes do for one cause: a W3C trace context that travels in message
// headers, and the few metrics that every service counts alike. It has no exporter of traces: the identifiers are for
// logs and for whoever reads the stream.
package telemetry

import (
	"context"
	"crypto/rand"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Inject writes the trace context of ctx into header as traceparent (and tracestate); a ctx without one gets a new trace.
func Inject(ctx context.Context, header nats.Header) {
	w3c.Inject(withTrace(ctx), natsCarrier(header))
}

// Extract returns ctx within the trace that header names, as a new span of it; without a valid traceparent it is a new
// trace. A handler calls it once, and what it publishes with that ctx belongs to the same trace.
func Extract(ctx context.Context, header nats.Header) context.Context {
	return child(w3c.Extract(ctx, natsCarrier(header)))
}

// TraceID is the trace that ctx belongs to, 32 hexadecimal digits for logs; "" when it belongs to none.
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

var w3c = propagation.TraceContext{}

func withTrace(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return child(ctx)
}

// child returns ctx with a span of its own: in the trace of ctx, or in a new one when there is none.
func child(ctx context.Context) context.Context {
	parent := trace.SpanContextFromContext(ctx)
	span := trace.SpanContextConfig{TraceID: parent.TraceID(), TraceFlags: parent.TraceFlags(), TraceState: parent.TraceState()}
	if !parent.IsValid() {
		span = trace.SpanContextConfig{TraceFlags: trace.FlagsSampled}
		_, _ = rand.Read(span.TraceID[:]) // never fails, by its contract
	}
	_, _ = rand.Read(span.SpanID[:])
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(span))
}

// natsCarrier lets the propagator read and write message headers, whose names keep their case, unlike those of HTTP.
type natsCarrier nats.Header

func (c natsCarrier) Get(key string) string { return nats.Header(c).Get(key) }

func (c natsCarrier) Set(key, value string) { nats.Header(c).Set(key, value) }

func (c natsCarrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
