package text

// TurnsDirection reports a control that turns the direction of the text after it: an embedding or override (U+202A to U+202E) or an isolate
// (U+2066 to U+2069). Marks that stand for a letter (U+200E, U+200F, U+061C) are part of many languages' writing and are none.
func TurnsDirection(c rune) bool { return c >= 0x202A && c <= 0x202E || c >= 0x2066 && c <= 0x2069 }
