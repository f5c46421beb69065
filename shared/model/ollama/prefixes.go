package ollama

import (
	"strings"

	"github.com/factstream/factstream/shared/model"
)

// prefixes are what a model was trained to see before a text.
type prefixes struct{ name, document, query string }

func (p prefixes) of(kind model.EmbedKind) string {
	if kind == model.Query {
		return p.query
	}
	return p.document
}

// schemes by the name of the model, without owner and tag. Models that are not listed get none.
var schemes = map[string]prefixes{
	"nomic-embed-text":        {"nomic", "search_document: ", "search_query: "},
	"nomic-embed-text-v2-moe": {"nomic", "search_document: ", "search_query: "},
	"mxbai-embed-large":       {"represent", "", "Represent this sentence for searching relevant passages: "},
	"snowflake-arctic-embed":  {"represent", "", "Represent this sentence for searching relevant passages: "},
	"snowflake-arctic-embed2": {"query", "", "query: "},
	"embeddinggemma":          {"gemma", "title: none | text: ", "task: search result | query: "},
	"qwen3-embedding":         {"instruct", "", "Instruct: Given a question, retrieve passages that answer it\nQuery: "},
}

func prefixesOf(tag string) prefixes { return schemes[family(tag)] }

// family is a tag without its owner and version: "someone/nomic-embed-text:v1.5" is nomic-embed-text.
func family(tag string) string {
	name := tag[strings.LastIndexByte(tag, '/')+1:]
	name, _, _ = strings.Cut(name, ":")
	return strings.ToLower(name)
}

// floorOf is the cosine similarity from which two facts are put before the judge. It is low on purpose: similarity only proposes.
func floorOf(tag string) (floor float64, why string) {
	if schemes[family(tag)].name == "nomic" {
		return 0.7, "nomic-embed-text scores a reworded claim 0.977 and a flat contradiction of it 0.980; 0.7 leaves room for looser wording and has no upper bound, since no threshold separates the two"
	}
	return 0.6, "not measured for this model: 0.6 is lower than the measured floor of nomic-embed-text (0.7), so that rather too many pairs are judged than too few"
}
