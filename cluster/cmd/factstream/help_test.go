package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/fault"
)

func TestNoLineOfAnyHelpIsWiderThanATerminal(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"faults": faultsUsage}
	for _, command := range []string{"", "help", "no-such-command", "up --help", "up-cluster --help", "backup --help", "backup", "restore --help", "restore", "verify --help"} {
		var out, err bytes.Buffer
		run(strings.Fields(command), &out, &err)
		texts["factstream "+command] = out.String() + err.String()
	}
	for name, text := range texts {
		require.NotEmpty(t, text, name)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), columns, "%s: %s", name, line)
		}
	}
}

func TestWhatAFaultPointMeansStandsBesideItsNameInLinesThatFit(t *testing.T) {
	t.Parallel()
	long := "the model has answered; its reply is not kept, and that of the engine without one never is; hit once for each call, also where two are made at once"
	list := faultsList([]fault.Point{{Name: "a.b", What: "nothing was done about it yet"}, {Name: "distiller.replied", What: long}, {Name: "judge.chosen", What: "é"}})
	lines := strings.Split(strings.TrimSuffix(list, "\n"), "\n")
	require.Equal(t, "a.b                nothing was done about it yet", lines[0])
	require.Regexp(t, "^distiller.replied  the model", lines[1])
	for _, line := range lines[2 : len(lines)-1] {
		require.Regexp(t, "^"+strings.Repeat(" ", 19)+"[^ ]", line, "behind the name that it goes on from")
	}
	require.Equal(t, "judge.chosen       é", lines[len(lines)-1])
	for _, line := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(line), columns, line)
	}
	require.Contains(t, regexp.MustCompile(`\s+`).ReplaceAllString(list, " "), long, "nothing is left out")
}
