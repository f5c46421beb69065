package api

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/shared/notebook"
)

// refusals is what each status of an error means, wherever it is answered.
var refusals = map[int]string{
	http.StatusBadRequest:            "The request cannot be read: malformed JSON, no body where one is needed, or a body that broke off. Nothing was changed",
	http.StatusUnauthorized:          "The server has an access token (FACTSTREAM_TOKEN), and the request does not carry it",
	http.StatusPaymentRequired:       "The budget does not allow it: spent, reserved, cost and budget are named. Nothing was spent",
	http.StatusForbidden:             "The request was sent to a name that is not this server's, or is a write from a page of another site",
	http.StatusNotFound:              "There is none",
	http.StatusMethodNotAllowed:      "The path takes other methods; Allow lists them",
	http.StatusRequestTimeout:        "The body took too long to arrive. Nothing was changed",
	http.StatusConflict:              "The state of things does not allow it; the detail says what would have to change",
	http.StatusGone:                  "It was deleted",
	http.StatusRequestEntityTooLarge: "The body is too large. Nothing was changed",
	http.StatusUnsupportedMediaType:  "The body is not sent as JSON: it needs the header Content-Type: application/json. Nothing was changed",
	http.StatusUnprocessableEntity:   "A parameter or a field is not known or has a value that is not allowed, or the body is not valid UTF-8. Nothing was changed",
	http.StatusInternalServerError:   "Something went wrong inside; the log of the gateway says what",
	http.StatusServiceUnavailable:    "The message bus does not answer at this moment. The type outcome-unknown says of a write that it may be stored",
}

// reasons is what each code of a reason means. More may come.
var reasons = []struct{ code, means string }{
	{notebook.ReasonNew, "nothing has been asked yet"},
	{notebook.ReasonCycle, "autopilot's runs are under way"},
	{notebook.ReasonManual, "a run that a person asked for is under way"},
	{notebook.ReasonWatch, "a watch is looking again"},
	{notebook.ReasonRetry, "a stage is done again"},
	{notebook.ReasonPaused, "a person paused it"},
	{notebook.ReasonProvider, "a run failed or was cancelled"},
	{notebook.ReasonStage, "a stage failed that autopilot needs"},
	{notebook.ReasonNoKey, "there was no usable key when the next question was due"},
	{notebook.ReasonAutoOff, "autopilot is off or was never started"},
	{notebook.ReasonReady, "Start has something it may ask"},
	{notebook.ReasonNoQuestions, "nothing is left to ask"},
	{notebook.ReasonDepth, "what is left to ask is too deep"},
	{notebook.ReasonAnswerBudget, "the limit of answers is reached"},
	{notebook.ReasonBudget, "the next run does not fit into the budget"},
	{notebook.ReasonArchived, "the thread is archived, in start_refused and run_refused only"},
}

// tellReasons puts the codes beside the field that holds them.
func tellReasons(schemas huma.Registry) {
	var all []string
	for _, r := range reasons {
		all = append(all, r.code+": "+r.means)
	}
	schemas.Map()["Reason"].Properties["code"].Description = "Stable; more may come. " + strings.Join(all, "; ")
}

// describe completes the document: handlers declare the errors of their own, and here is what everything before them answers (the guard, the mux,
// the framework), and what is served without the framework. A status that is sent and not described fails the tests.
func describe(doc *huma.OpenAPI) {
	tellReasons(doc.Components.Schemas)
	for path, item := range doc.Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if o != nil {
				delete(o.Responses, "default")
				refuse(doc, o, slices.Concat(framework(path, o), guarded(path, o.Method)))
			}
		}
	}
	for _, o := range unframed() {
		doc.AddOperation(o)
		refuse(doc, o, guarded(o.Path, o.Method))
	}
}

// guarded are the statuses that the guard and the mux answer.
func guarded(path, method string) []int {
	all := []int{http.StatusForbidden, http.StatusMethodNotAllowed}
	if !open(path) {
		all = append(all, http.StatusUnauthorized)
	}
	if method != http.MethodGet {
		all = append(all, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge)
	}
	return all
}

// framework are the statuses that the framework answers, and those that every handler may answer through problemOf.
func framework(path string, o *huma.Operation) []int {
	all := append(slices.Clone(o.Errors), http.StatusUnprocessableEntity)
	if o.RequestBody != nil {
		all = append(all, http.StatusUnsupportedMediaType)
	}
	if strings.Contains(path, "{") { // what is named may not be there, or be deleted at this moment
		all = append(all, http.StatusNotFound, http.StatusGone)
	}
	if strings.HasPrefix(path, base+"/") {
		all = append(all, http.StatusInternalServerError, http.StatusServiceUnavailable)
	}
	return all
}

// refuse describes statuses of an operation as problems, but for those that it has described itself.
func refuse(doc *huma.OpenAPI, o *huma.Operation, statuses []int) {
	for _, status := range statuses {
		code := strconv.Itoa(status)
		if own := o.Responses[code]; own != nil && own.Content[problemType] == nil {
			continue
		}
		r := holding[Problem](doc.Components.Schemas, problemType, refusals[status]+".")
		if status == http.StatusMethodNotAllowed {
			r.Headers = map[string]*huma.Header{"Allow": {Description: "The methods that the path takes", Schema: &huma.Schema{Type: "string"}}}
		}
		o.Responses[code] = r
	}
}

// unframed are the operations that are served without the framework.
func unframed() []*huma.Operation {
	return []*huma.Operation{
		{Method: http.MethodGet, Path: "/metrics", OperationID: "metrics", Summary: "Figures for Prometheus", Responses: map[string]*huma.Response{
			"200": inText("text/plain", "In the text format of Prometheus"),
			"500": inText("text/plain", "A figure could not be collected."),
		}},
		{Method: http.MethodGet, Path: "/openapi.json", OperationID: "openapi", Summary: "This description", Responses: map[string]*huma.Response{
			"200": respond("OpenAPI 3.1", "application/openapi+json", &huma.Schema{Type: "object"}),
		}},
		{Method: http.MethodGet, Path: "/", OperationID: "page", Summary: "The page for people", Responses: map[string]*huma.Response{
			"200": inText("text/html", "The page"),
			"401": inText("text/html", "The form that takes the access token"),
		}},
	}
}

// inText describes an answer that is text of a media type.
func inText(media, description string) *huma.Response {
	return respond(description, media, &huma.Schema{Type: "string"})
}

// holding describes an answer that is a value of T, as the document's schema of T says.
func holding[T any](schemas huma.Registry, media, description string) *huma.Response {
	return respond(description, media, schemas.Schema(reflect.TypeFor[T](), true, ""))
}

func respond(description, media string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{media: {Schema: schema}}}
}
