package web

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(
	renderer.WithNodeRenderers(util.Prioritized(tagsAsText{}, 1))))

// tagsAsText shows HTML that stands in a report as the text that it is, rather than leaving out what a person may want to read.
type tagsAsText struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (tagsAsText) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkSkipChildren, escape(w, source, n.(*ast.RawHTML).Segments)
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		block := n.(*ast.HTMLBlock)
		if entering {
			if _, err := w.WriteString("<p>"); err != nil {
				return ast.WalkStop, err
			}
			return ast.WalkContinue, escape(w, source, block.Lines())
		}
		if block.HasClosure() {
			if _, err := w.Write(util.EscapeHTML(block.ClosureLine.Value(source))); err != nil {
				return ast.WalkStop, err
			}
		}
		_, err := w.WriteString("</p>\n")
		return ast.WalkContinue, err
	})
}

func escape(w util.BufWriter, source []byte, lines *text.Segments) error {
	for i := range lines.Len() {
		line := lines.At(i)
		if _, err := w.Write(util.EscapeHTML(line.Value(source))); err != nil {
			return err
		}
	}
	return nil
}

// allowed is what a report may show: text, tables and links to web pages. No images, which would tell their server who reads; no ids and classes,
// which the page's own script and style go by.
var allowed = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del", "sub", "sup",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true) // which also sets noopener
	return p
}()

// Render makes sanitised HTML of Markdown from outside.
func Render(source string) ([]byte, error) {
	var html bytes.Buffer
	if err := markdown.Convert([]byte(source), &html); err != nil {
		return nil, fmt.Errorf("render Markdown: %w", err)
	}
	return allowed.SanitizeBytes(html.Bytes()), nil
}
