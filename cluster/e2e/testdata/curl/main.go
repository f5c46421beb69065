// Command curl does what the lines of the greeting ask of curl, so that they can be run where there is none.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	method, url, body, header := "", "", "", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for len(args) > 0 {
		arg, value := args[0], ""
		args = args[1:]
		if (arg == "-X" || arg == "-H" || arg == "-d") && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch {
		case arg == "-s":
		case arg == "-X":
			method = value
		case arg == "-H":
			name, content, _ := strings.Cut(value, ":")
			header.Set(name, strings.TrimSpace(content))
		case arg == "-d":
			body = value
		case strings.HasPrefix(arg, "-") || url != "":
			return fmt.Errorf("argument %q is not known here", arg)
		default:
			url = arg
		}
	}
	if method == "" {
		method = http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
	}
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
