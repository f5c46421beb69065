package up

import (
	"fmt"
	"os/exec"
	"slices"

	"github.com/factstream/factstream/shared/fault"
)

// FaultPoints asks every service's program in dir for its fault points, in the order of Services.
func FaultPoints(dir string) ([]fault.Point, error) {
	programs, err := find(dir)
	if err != nil {
		return nil, err
	}
	var all []fault.Point
	for _, name := range slices.Concat(Services...) {
		text, err := exec.Command(programs[name], fault.Flag).Output()
		if err != nil {
			return nil, fmt.Errorf("ask %s for its fault points: %w", name, err)
		}
		points, err := fault.ReadPoints(string(text))
		if err != nil {
			return nil, fmt.Errorf("fault points of %s: %w", name, err)
		}
		all = append(all, points...)
	}
	return all, nil
}
