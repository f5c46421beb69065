package config

import (
	"fmt"
	"slices"
	"strings"

	prose "github.com/factstream/factstream/shared/text" // text is a kind of variable here
)

// Help is the help text of the process called name: every variable with its flag, its meaning and its default, grouped; without are the names
// of variables that do not count there. It panics when there is no such variable.
func Help(name string, without ...string) string {
	for _, name := range without {
		if !slices.Contains(Variables(), name) {
			panic("config: no variable " + name)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s [flags]\n\n", name)
	b.WriteString(prose.Wrap("Every flag stands for an environment variable and wins over it. Secrets are taken from the environment only, "+
		"since all users of a machine can read the arguments of its processes.", 0, columns, "") + "\n")
	group := ""
	for _, v := range variables {
		if slices.Contains(without, v.name) {
			continue
		}
		if v.group != group {
			group = v.group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		flagName := "--" + v.flag()
		if v.secret && v.name != "NATS_URL" {
			flagName = "(no flag)"
		}
		help := v.help
		if v.fallback != "" {
			help += " [" + v.fallback + "]"
		}
		b.WriteString(HelpEntry(flagName, v.name, help))
	}
	return b.String()
}

// columns is the width of a terminal that nobody has made wider.
const columns = 80

// HelpEntry is the part of a help text about one flag: its names on a line, and below them what it does, wrapped to 80 columns.
func HelpEntry(flag, variable, help string) string {
	const indent = "        "
	return fmt.Sprintf("  %-26s %s\n%s%s\n", flag, variable, indent, prose.Wrap(help, len(indent), columns, indent))
}
