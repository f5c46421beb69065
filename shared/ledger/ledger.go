// Package ledger holds the rules of money: what a run costs, and that reserved + spent never exceeds the budget. It is pure.
package ledger

import (
	"fmt"
	"maps"

	"github.com/factstream/factstream/shared/event"
)

// Prices of one Tabstack research call in credits, by mode. Source: the provider's price list as of the recorded streams;
// docs/architecture.md, "Dispatch".
const (
	FastCost     = 250
	BalancedCost = 350
)

// Cost gives the credits that one run reserves. Brave is paid in dollars after the answer and reserves none.
func Cost(provider, mode string) (int, error) {
	switch {
	case provider == event.Brave:
		return 0, nil
	case provider == event.Tabstack && mode == event.Fast:
		return FastCost, nil
	case provider == event.Tabstack && mode == event.Balanced:
		return BalancedCost, nil
	}
	return 0, fmt.Errorf("no price for provider %q in mode %q", provider, mode)
}

// Ledger is the account of one thread.
type Ledger struct {
	Budget       int            // credits
	Spent        int            // credits
	Reserved     map[string]int // run id -> credits, until its terminal event
	Dollars      float64        // Brave, as it reported them
	Answers      int            // Brave answers saved
	Pending      int            // Brave answers requested and not ended
	AnswerBudget *int           // nil: no limit
}

// Held is the sum of all reservations in credits.
func (l Ledger) Held() int {
	sum := 0
	for _, cost := range l.Reserved {
		sum += cost
	}
	return sum
}

// Exceeded is the refusal of a reservation.
type Exceeded struct {
	Spent, Reserved, Cost, Budget int
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("the budget of %d credits does not allow %d more: %d are spent and %d are reserved", e.Budget, e.Cost, e.Spent, e.Reserved)
}

// AnswersExceeded is the refusal of one more Brave answer.
type AnswersExceeded struct {
	Saved, Requested, Limit int
}

func (e *AnswersExceeded) Error() string {
	return fmt.Sprintf("the limit of %d answers does not allow one more: %d are saved and %d are requested", e.Limit, e.Saved, e.Requested)
}

// Allows says whether one more run of this provider and cost may be reserved: nil, *Exceeded or *AnswersExceeded.
func (l Ledger) Allows(provider string, cost int) error {
	if provider == event.Brave {
		if l.AnswerBudget != nil && l.Answers+l.Pending+1 > *l.AnswerBudget {
			return &AnswersExceeded{Saved: l.Answers, Requested: l.Pending, Limit: *l.AnswerBudget}
		}
		return nil
	}
	if held := l.Held(); held+l.Spent+cost > l.Budget {
		return &Exceeded{Spent: l.Spent, Reserved: held, Cost: cost, Budget: l.Budget}
	}
	return nil
}

// Reserve puts the cost of a run aside.
func (l *Ledger) Reserve(run, provider string, cost int) {
	if l.Reserved == nil {
		l.Reserved = map[string]int{}
	}
	l.Reserved[run] = cost
	if provider == event.Brave {
		l.Pending++
	}
}

// Settle ends the reservation of a run: spent credits and dollars stay, the rest is released. saved says that an answer was kept.
func (l *Ledger) Settle(run, provider string, spent int, dollars float64, saved bool) {
	delete(l.Reserved, run)
	l.Spent += spent
	l.Dollars += dollars
	if provider == event.Brave {
		l.Pending--
		if saved {
			l.Answers++
		}
	}
}

// Clone copies the account.
func (l Ledger) Clone() Ledger {
	l.Reserved = maps.Clone(l.Reserved)
	return l
}
