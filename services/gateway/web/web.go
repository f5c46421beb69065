// Package web is the page of the notebook: HTML, style and script that are part of the program and load nothing from elsewhere.
//
// The script reads the same API as everybody. Whatever comes from a provider or a model is put into the page as text; the one place where it becomes
// HTML is a report, which is rendered here and sanitised.
package web

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/text"
)

// ContentSecurityPolicy lets the page load its own files and nothing else, whatever a report may hold.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Cookie is the name of the page's cookie.
const Cookie = "factstream"

const cookieAge = 30 * 24 * time.Hour

//go:embed assets
var assets embed.FS

var (
	reportPage = template.Must(template.ParseFS(assets, "assets/report.html"))
	loginPage  = template.Must(template.ParseFS(assets, "assets/login.html"))
	errorPage  = template.Must(template.ParseFS(assets, "assets/error.html"))
)

// Backend is what the page needs beside the API.
type Backend struct {
	Token  string // empty: nobody has to log in
	Report func(ctx context.Context, run string) (Report, error)
}

// Report is a run's report as the page shows it.
type Report struct {
	Question string
	Thread   string
	Replayed bool
	Markdown string
	Pages    []Page
}

// Page is one cited page; its number is that of the markers in the report.
type Page struct {
	N     int
	URL   string
	Title string
}

// Register adds the page's paths to mux.
func Register(mux *http.ServeMux, b Backend) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { file(w, r, "page.html") })
	mux.HandleFunc("GET /assets/{file}", func(w http.ResponseWriter, r *http.Request) { file(w, r, r.PathValue("file")) })
	mux.HandleFunc("GET /reports/{run}", b.report)
	mux.HandleFunc("GET /login", Login)
	mux.HandleFunc("POST /login", b.login)
}

// files of the page with their content types. Templates are not among them.
var files = map[string]string{
	"page.html": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "api.js": "text/javascript; charset=utf-8",
	"dom.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
}

// file serves one of the page's own files.
func file(w http.ResponseWriter, r *http.Request, name string) {
	kind, known := files[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, assets, "assets/"+name)
}

func (b Backend) report(w http.ResponseWriter, r *http.Request) {
	report, err := b.Report(r.Context(), r.PathValue("run"))
	if err != nil {
		status := http.StatusInternalServerError
		if told, ok := err.(interface{ GetStatus() int }); ok {
			status = told.GetStatus()
		}
		failed(w, status, err.Error())
		return
	}
	html, err := Render(report.Markdown)
	if err != nil {
		failed(w, http.StatusInternalServerError, "The report cannot be shown; GET /api/v1/runs/"+r.PathValue("run")+"/report gives its Markdown.")
		return
	}
	page(w, http.StatusOK, reportPage, struct {
		Report
		HTML template.HTML
	}{report, template.HTML(html)}) //nolint:gosec // sanitised by Render
}

// IsPage says that a request is a browser's for a page, which is told what is wrong by a page rather than by an error for programs.
func IsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/reports/") ||
		!strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html"))
}

// NotFound tells a person that there is no such page.
func NotFound(w http.ResponseWriter, text string) { failed(w, http.StatusNotFound, text) }

func failed(w http.ResponseWriter, status int, text string) {
	page(w, status, errorPage, struct{ Title, Text string }{http.StatusText(status), text})
}

// Login shows the form for the access token.
func Login(w http.ResponseWriter, _ *http.Request) {
	page(w, http.StatusUnauthorized, loginPage, struct{ Wrong bool }{})
}

// login takes the token and gives a cookie that follows from it: whoever reads the cookie does not have the token.
func (b Backend) login(w http.ResponseWriter, r *http.Request) {
	if b.Token == "" { // nobody has to
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if subtle.ConstantTimeCompare([]byte(CookieValue(r.PostFormValue("token"))), []byte(CookieValue(b.Token))) != 1 {
		page(w, http.StatusUnauthorized, loginPage, struct{ Wrong bool }{true})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: Cookie, Value: CookieValue(b.Token), Path: "/", MaxAge: int(cookieAge.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// CookieValue is the value of the page's cookie for a token.
func CookieValue(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("factstream page"))
	return hex.EncodeToString(mac.Sum(nil))
}

func page(w http.ResponseWriter, status int, t *template.Template, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	var html bytes.Buffer
	_ = t.Execute(&html, data)          // the data fits its template
	_, _ = w.Write(inert(html.Bytes())) // who hung up needs no page
}

// inert shows the characters that turn the direction of what follows as their names, as the function of dom.js that says why does. It takes a page
// whole: in addresses of links they are escaped already.
func inert(html []byte) []byte {
	out := make([]byte, 0, len(html))
	for len(html) > 0 {
		c, n := utf8.DecodeRune(html)
		if text.TurnsDirection(c) {
			out = fmt.Appendf(out, "[U+%04X]", c)
		} else {
			out = append(out, html[:n]...)
		}
		html = html[n:]
	}
	return out
}
