package tiny

import "strings"

// Shape of the embedding models: one layer, two heads, the mean of all tokens as the vector.
const (
	embedHeads   = 2
	embedForward = 2 * Dimension
	poolMean     = 1
)

// Special tokens of a WordPiece vocabulary, by their numbers.
var special = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}

const (
	tokenPad       = 0
	tokenUnknown   = 1
	tokenClass     = 2
	tokenSeparator = 3
)

// words are pieces of their own; all other text is spelt.
const words = "the a an of in to and or for by with from is are was not no new search query document pump heat cost life year measured"

// wordPieces gives the tokens and their kinds. A piece that begins a word is marked by a lower one eighth block.
func wordPieces() (tokens []string, kinds []int32) {
	add := func(kind int32, pieces ...string) {
		for _, p := range pieces {
			tokens, kinds = append(tokens, p), append(kinds, kind)
		}
	}
	add(tokenControl, special...)
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789.,:;-_?!'\"()%/" {
		add(tokenNormal, "▁"+string(c), string(c))
	}
	for _, w := range strings.Fields(words) {
		if len(w) > 1 {
			add(tokenNormal, "▁"+w)
		}
	}
	return tokens, kinds
}

// embedding writes a model of the architecture bert or nomic-bert. The latter turns its positions (RoPE), has one matrix for
// queries, keys and values, a gate, and no biases.
func embedding(architecture, name string, seed uint64) []byte {
	tokens, kinds := wordPieces()
	w := drawn(seed)
	tensors := []tensor{
		w.matrix("token_embd.weight", 1, Dimension, len(tokens)),
		w.matrix("token_types.weight", 0.05, Dimension, 2),
		constant("token_embd_norm.weight", 1, Dimension), constant("token_embd_norm.bias", 0, Dimension),
	}
	const block = "blk.0."
	if architecture == "bert" {
		tensors = append(tensors, w.matrix("position_embd.weight", 0.05, Dimension, EmbedContext))
		for _, part := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			tensors = append(tensors, w.matrix(block+part+".weight", 0.05, Dimension, Dimension), constant(block+part+".bias", 0, Dimension))
		}
		tensors = append(tensors,
			w.matrix(block+"ffn_up.weight", 0.05, Dimension, embedForward), constant(block+"ffn_up.bias", 0, embedForward),
			w.matrix(block+"ffn_down.weight", 0.05, embedForward, Dimension), constant(block+"ffn_down.bias", 0, Dimension))
	} else {
		tensors = append(tensors,
			w.matrix(block+"attn_qkv.weight", 0.05, Dimension, 3*Dimension),
			w.matrix(block+"attn_output.weight", 0.05, Dimension, Dimension),
			w.matrix(block+"ffn_gate.weight", 0.05, Dimension, embedForward),
			w.matrix(block+"ffn_up.weight", 0.05, Dimension, embedForward),
			w.matrix(block+"ffn_down.weight", 0.05, embedForward, Dimension))
	}
	for _, norm := range []string{"attn_output_norm", "layer_output_norm"} {
		tensors = append(tensors, constant(block+norm+".weight", 1, Dimension), constant(block+norm+".bias", 0, Dimension))
	}

	pairs := []pair{
		{"general.architecture", architecture},
		{"general.name", name},
		{"general.file_type", uint32(tensorFloat32)},
		{architecture + ".context_length", uint32(EmbedContext)},
		{architecture + ".embedding_length", uint32(Dimension)},
		{architecture + ".block_count", uint32(1)},
		{architecture + ".feed_forward_length", uint32(embedForward)},
		{architecture + ".attention.head_count", uint32(embedHeads)},
		{architecture + ".attention.head_count_kv", uint32(embedHeads)},
		{architecture + ".attention.layer_norm_epsilon", float32(1e-12)},
		{architecture + ".attention.causal", false},
		{architecture + ".pooling_type", uint32(poolMean)},
		{"tokenizer.ggml.model", "bert"},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", kinds},
		{"tokenizer.ggml.token_type_count", uint32(2)},
		{"tokenizer.ggml.scores", constant("", -1, len(tokens)).values},
		{"tokenizer.ggml.bos_token_id", uint32(tokenClass)},
		{"tokenizer.ggml.eos_token_id", uint32(tokenSeparator)},
		{"tokenizer.ggml.cls_token_id", uint32(tokenClass)},
		{"tokenizer.ggml.separator_token_id", uint32(tokenSeparator)},
		{"tokenizer.ggml.padding_token_id", uint32(tokenPad)},
		{"tokenizer.ggml.unknown_token_id", uint32(tokenUnknown)},
	}
	if architecture == "nomic-bert" {
		pairs = append(pairs, pair{architecture + ".rope.freq_base", float32(1000)})
	}
	return encode(pairs, tensors)
}
