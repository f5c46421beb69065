// Package text holds what Factstream knows about plain text, Markdown reports, URLs and dates. Everything in it is a
// pure function of its arguments: no clock, no locale, no configuration.
//
// Offsets are always byte offsets into the text that was passed in, Start inclusive and End exclusive, so that
// text[Start:End] is literally what was found. "Characters" in limits are Unicode code points. No function cuts
// inside a grapheme (what a reader sees as one character), and each needs time linear in its input.
package text
