// Package readers lets programs outside the notebook read NOTEBOOK through consumers of their own, and do nothing else.
//
// Two accounts keep readers apart from what they read. Permissions in one account do not: a reader chooses where its consumer's
// messages go, by the reply subject of a pull or the deliver subject of a push consumer, and in one account that may be a subject
// that a bucket stores or a service obeys. Across accounts replies go back to the readers' account only, and consumers are made
// by a gate (see gate.go), of the pull kind only.
package readers

import (
	"fmt"
	"strings"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/topology"
)

// Names in the server's configuration.
const (
	ServiceAccount = "FACTSTREAM" // has the streams; the services' user is in it
	ReaderAccount  = "READERS"    // has nothing but what it imports
	ServiceUser    = "factstream" // may do everything in its account
	ReaderUser     = "reader"     // may read NOTEBOOK through consumers of its own
)

const (
	api      = "$JS.API."
	consumer = api + "CONSUMER."
	ack      = "$JS.ACK." + topology.Notebook + "."
	// gatePrefix replaces api on the way to the gate. All of the API is sent there, though the gate answers one request only: an
	// account that does not import the whole has an API of its own, which says that it has no JetStream.
	gatePrefix = "factstream.gate."
)

// Values are the parts of the configuration that differ from server to server, each written as the server's configuration language
// wants it: a quoted text, or a variable like $READER_PASSWORD.
type Values struct {
	JetStream       string // of the services' account: "enabled", or a block with its limits
	ServicePassword string
	ReaderPassword  string
}

// Accounts is the part of a server's configuration that says who may do what.
func Accounts(v Values) string {
	exports := []string{fmt.Sprintf(`{service: "%s>", accounts: [%s]}`, gatePrefix, ReaderAccount)}
	imports := []string{fmt.Sprintf(`{service: {account: %s, subject: "%s>"}, to: "%s>"}`, ServiceAccount, gatePrefix, api)}
	for _, subject := range direct() {
		// A pull is answered more than once, so these answers are a stream.
		exports = append(exports, fmt.Sprintf(`{service: %q, response_type: stream, accounts: [%s]}`, subject, ReaderAccount))
		imports = append(imports, fmt.Sprintf(`{service: {account: %s, subject: %q}}`, ServiceAccount, subject))
	}
	allow, deny := permissions()
	return fmt.Sprintf(`accounts {
  %s {
    jetstream: %s
    users: [{user: %s, password: %s}]
    exports: [%s
    ]
  }
  %s {
    users: [{user: %s, password: %s, permissions: {
      publish: {
        allow: [%s
        ]
        deny: [%s
        ]
      }
      subscribe: {allow: [%q]}
    }}]
    imports: [%s
    ]
  }
}
`,
		ServiceAccount, v.JetStream, ServiceUser, v.ServicePassword, lines(6, exports),
		ReaderAccount, ReaderUser, v.ReaderPassword, lines(10, quoted(allow)), lines(10, quoted(deny)), connect.ReaderInbox+".>", lines(6, imports))
}

// direct lists what readers may ask of JetStream without the gate.
func direct() []string {
	subjects := []string{api + "STREAM.INFO." + topology.Notebook, ack + ">"}
	for _, verb := range []string{"INFO", "DELETE", "MSG.NEXT"} {
		subjects = append(subjects, consumer+verb+"."+topology.Notebook+".*")
	}
	return subjects
}

// permissions let a reader make, read and delete consumers of its own on NOTEBOOK. Every worker's consumer is denied by name: without
// that a reader can take a worker's messages, change its filter or delete it. Creating a consumer without its name in the subject is
// not allowed at all, since there the name, and so the rule, would be in the body only.
func permissions() (allow, deny []string) {
	allow = append(direct(), consumer+"CREATE."+topology.Notebook+".>")
	for _, d := range topology.Durables() {
		any := consumer + "*." + topology.Notebook + "." + d.Name
		// With and without the filter that a CREATE may carry behind the name.
		deny = append(deny, any, any+".>", consumer+"MSG.NEXT."+topology.Notebook+"."+d.Name, ack+d.Name+".>")
	}
	return allow, deny
}

func quoted(subjects []string) []string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = fmt.Sprintf("%q", s)
	}
	return out
}

// lines puts each item on a line of its own.
func lines(indent int, items []string) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString("\n" + strings.Repeat(" ", indent) + item)
	}
	return b.String()
}
