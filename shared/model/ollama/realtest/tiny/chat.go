package tiny

import "fmt"

// Shape of the chat models: architecture llama, one layer.
const (
	chatWidth   = 32
	chatHeads   = 2
	chatForward = 64
)

// Control tokens of the chat models, after the 256 tokens of the bytes.
var control = []string{"<|bos|>", "<|eos|>", "<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>"}

const (
	bos        = 256
	eos        = 257
	closeThink = 262
)

// merges make a byte-level vocabulary a real one: a tokenizer without any is refused.
var merges = [][2]string{{"t", "h"}, {"i", "n"}, {"e", "r"}}

// Kinds of tokens, as llama.cpp numbers them.
const (
	tokenNormal  = 1
	tokenControl = 3
)

func chat(name string, seed uint64) []byte {
	tokens, kinds := byteTokens(), make([]int32, 0, 300)
	for range tokens {
		kinds = append(kinds, tokenNormal)
	}
	for _, c := range control {
		tokens, kinds = append(tokens, c), append(kinds, tokenControl)
	}
	lines := make([]string, len(merges))
	for i, m := range merges {
		tokens, kinds = append(tokens, m[0]+m[1]), append(kinds, tokenNormal)
		lines[i] = m[0] + " " + m[1]
	}

	w := drawn(seed)
	embedding := w.matrix("token_embd.weight", 0.3, chatWidth, len(tokens))
	output := constant("output.weight", 0, chatWidth, len(tokens))
	for token, bias := range biases(name, kinds) {
		row := token * chatWidth
		if name != Loop {
			// What is like the last token is unlikely next: no token follows itself, and the text goes on changing without any chance
			// in it, as the temperature is 0.
			for i := row; i < row+chatWidth; i++ {
				output.values[i] = -2 * embedding.values[i]
			}
		}
		// The first component of the state is large and the same whatever came before, so the first weight of a token's output is
		// added to its chances everywhere.
		embedding.values[row] = 3
		output.values[row] = bias / 3
	}
	const block = "blk.0."
	return encode([]pair{
		{"general.architecture", "llama"},
		{"general.name", name},
		{"general.file_type", uint32(tensorFloat32)},
		{"llama.context_length", uint32(ChatContext)},
		{"llama.embedding_length", uint32(chatWidth)},
		{"llama.block_count", uint32(1)},
		{"llama.feed_forward_length", uint32(chatForward)},
		{"llama.attention.head_count", uint32(chatHeads)},
		{"llama.attention.head_count_kv", uint32(chatHeads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(chatWidth / chatHeads)},
		{"llama.rope.freq_base", float32(10000)},
		{"llama.vocab_size", uint32(len(tokens))},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", "llama-bpe"},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", kinds},
		{"tokenizer.ggml.merges", lines},
		{"tokenizer.ggml.bos_token_id", uint32(bos)},
		{"tokenizer.ggml.eos_token_id", uint32(eos)},
		{"tokenizer.ggml.add_bos_token", true},
	}, []tensor{
		embedding, output, constant("output_norm.weight", 1, chatWidth),
		constant(block+"attn_norm.weight", 1, chatWidth),
		w.matrix(block+"attn_q.weight", 0.05, chatWidth, chatWidth),
		w.matrix(block+"attn_k.weight", 0.05, chatWidth, chatWidth),
		w.matrix(block+"attn_v.weight", 0.05, chatWidth, chatWidth),
		w.matrix(block+"attn_output.weight", 0.05, chatWidth, chatWidth),
		constant(block+"ffn_norm.weight", 1, chatWidth),
		w.matrix(block+"ffn_gate.weight", 0.05, chatWidth, chatForward),
		w.matrix(block+"ffn_up.weight", 0.05, chatWidth, chatForward),
		w.matrix(block+"ffn_down.weight", 0.05, chatForward, chatWidth),
	})
}

// biases are what is added to the chances of each token, so that the models write printable text and, where a schema says what
// may come, end soon: after one character of a string and one item of a list.
func biases(name string, kinds []int32) []float32 {
	b := make([]float32, len(kinds))
	for token := range b {
		switch {
		case kinds[token] == tokenControl:
			b[token] = -8
		case token < 256 && (token <= ' ' || token > '~'): // white space, not printable, or a part of a longer character
			b[token] = -6
		}
	}
	for _, c := range "etaoinshrdlu" {
		b[c] = 1.2
	}
	b['\\'], b[','] = -6, -2
	b[']'], b['}'], b['"'] = 2.5, 2.5, 6
	switch name {
	case Chat:
		b[eos] = 6
	case Think:
		b[eos], b[closeThink] = 2, 6
	case Loop:
		b['z'] = 12
	}
	return b
}

// byteTokens spells each byte as byte-level tokenizers do: printable bytes as themselves, the others as the characters from U+0100
// on, in their order.
func byteTokens() []string {
	tokens, next := make([]string, 256, 300), rune(0x100)
	for b := range tokens {
		switch r := rune(b); {
		case r >= '!' && r <= '~', r >= 0xA1 && r <= 0xAC, r >= 0xAE:
			tokens[b] = string(r)
		default:
			tokens[b] = string(next)
			next++
		}
	}
	if control[closeThink-256] != "</think>" || control[eos-256] != "<|eos|>" {
		panic(fmt.Sprintf("tiny: the control tokens %v have other numbers", control))
	}
	return tokens
}
