package projector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoMessage: the stream holds no message of this sequence, or no longer.
var ErrNoMessage = errors.New("the stream has no such message")

// Get reads one message of a stream by its sequence. It fails with ErrNoMessage when the stream's leader does not hold it, and with another error when
// nobody could say.
func Get(ctx context.Context, js jetstream.JetStream, stream string, seq uint64) (Message, error) {
	m, err := get(ctx, js, stream, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) { // any replica may have answered, also one that lags
		m, err = getOfLeader(ctx, js, stream, seq)
	}
	if err != nil {
		return Message{}, fmt.Errorf("read message %d of %s: %w", seq, stream, err)
	}
	return m, nil
}

// Newest gives the sequence of the newest message of a stream whose subject a filter selects. The stream's leader is asked, which has them all: any
// replica may lag. It fails with ErrNoMessage when there is none.
func Newest(ctx context.Context, js jetstream.JetStream, stream, filter string) (uint64, error) {
	m, err := askLeader(ctx, js, stream, map[string]any{"last_by_subj": filter})
	if err != nil {
		return 0, fmt.Errorf("look up the newest message of %s in %s: %w", filter, stream, err)
	}
	return m.Seq, nil
}

func get(ctx context.Context, js jetstream.JetStream, stream string, seq uint64) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTry)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return Message{}, err
	}
	m, err := s.GetMsg(ctx, seq)
	if err != nil {
		return Message{}, err
	}
	return newMessage(m.Subject, m.Header, m.Data, m.Sequence, m.Time), nil
}

func getOfLeader(ctx context.Context, js jetstream.JetStream, stream string, seq uint64) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTry)
	defer cancel()
	m, err := askLeader(ctx, js, stream, map[string]any{"seq": seq})
	if err != nil {
		return Message{}, err
	}
	var header nats.Header
	if len(m.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return Message{}, err
		}
	}
	return newMessage(m.Subject, header, m.Data, m.Seq, m.Time), nil
}

// leaderMessage is a message as a stream's leader gives it.
type leaderMessage struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// askLeader requests a message as the library did before there were direct answers: the library of today asks the leader only of streams that have none.
// It fails with ErrNoMessage when the leader holds none that the request asks for.
func askLeader(ctx context.Context, js jetstream.JetStream, stream string, asked map[string]any) (leaderMessage, error) {
	request, err := json.Marshal(asked)
	if err != nil {
		return leaderMessage{}, err
	}
	answer, err := js.Conn().RequestWithContext(ctx, apiPrefix(js)+"STREAM.MSG.GET."+stream, request)
	if err != nil {
		return leaderMessage{}, err
	}
	var body struct {
		Error   *jetstream.APIError `json:"error"`
		Message leaderMessage       `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &body); err != nil {
		return leaderMessage{}, err
	}
	switch {
	case body.Error != nil && body.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return leaderMessage{}, ErrNoMessage
	case body.Error != nil:
		return leaderMessage{}, body.Error
	}
	return body.Message, nil
}
