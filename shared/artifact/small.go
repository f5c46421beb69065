package artifact

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/topology"
)

// What fits into one piece is sent with its description at once, on the condition that nothing has its name: the library asks first, twice
// with the look that Put needs, and every answer to a question is waited for. The messages are those of the library, by
// the NATS architecture decision record ADR-20.

// putNew keeps content of one piece, at least a byte, that was not kept before. It is false, and nothing is left of it, when something has its name
// already.
func (s *Store) putNew(ctx context.Context, ref Ref, content []byte) (kept bool, err error) {
	ctx, cancel := bounded(ctx, ref.Size)
	defer cancel()
	sum := sha256.New()
	sum.Write(content)
	info := &jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: ref.Ref, Opts: chunks(ref.Size)}, Bucket: topology.StoreArtifacts, NUID: rand.Text(),
		Size: uint64(len(content)), Chunks: 1, Digest: jetstream.GetObjectDigestValue(sum),
	}
	piece := "$O." + topology.StoreArtifacts + ".C." + info.NUID
	first, err := s.js.PublishMsgAsync(&nats.Msg{Subject: piece, Data: content}, jetstream.WithRetryAttempts(0))
	if err != nil {
		return false, err
	}
	second, err := s.describe(info, jetstream.WithExpectLastSequencePerSubject(0))
	if err == nil {
		err = errors.Join(stored(ctx, first), stored(ctx, second))
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return false, s.stream.Purge(ctx, jetstream.WithPurgeSubject(piece))
	}
	return err == nil, err
}

// describe publishes what an object is.
func (s *Store) describe(info *jetstream.ObjectInfo, opts ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	body, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("describe the object %s: %w", info.Name, err)
	}
	msg := &nats.Msg{Subject: "$O." + topology.StoreArtifacts + ".M." + base64.URLEncoding.EncodeToString([]byte(info.Name)), Data: body, Header: nats.Header{}}
	msg.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	return s.js.PublishMsgAsync(msg, append(opts, jetstream.WithRetryAttempts(0))...)
}

func stored(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
