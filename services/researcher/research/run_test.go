package research

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/trail"
)

func TestAReplayedRunIsSettledWithItsReportAndPages(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{})
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, servicetest.Access))
	require.Equal(t, "completed", run.Status, "%+v", run.Failure)
	done := brought(t, r.Service, run)
	require.True(t, done.Replayed)
	require.Equal(t, 250, done.Cost)
	require.Equal(t, 1, done.Attempt)
	require.NotEmpty(t, done.Report.Text)
	require.Len(t, done.Pages, len(uniqueNumbers(done.Pages)))
	require.NotEmpty(t, done.Pages[0].Source)
	require.Contains(t, done.Metadata.Text, question)
	requireLedger(t, r.Service, thread, 250, 0)

	raw, err := r.Artifacts.Get(withinWait(t), artifact.Ref{Ref: done.Raw.Ref, SHA256: done.Raw.SHA256, Size: done.Raw.Size})
	require.NoError(t, err)
	require.Equal(t, done.Bytes, int64(len(raw)))
	_, err = r.Artifacts.Named(withinWait(t), thread, artifact.AttemptName(run.ID, 1))
	require.ErrorIs(t, err, artifact.ErrMissing, "the event has it")
	require.Eventually(t, func() bool { return len(spooledFiles(t, r)) == 0 }, servicetest.Wait, soon, "cleared after the run is settled")
}

// An answer that an earlier run of the thread has brought already stays as it is kept: somebody may be reading it.
func TestAnAnswerThatIsKnownIsNotPutAgain(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{})
	thread := newThread(t, r.Service)
	objects, err := r.JS.ObjectStore(withinWait(t), topology.StoreArtifacts)
	require.NoError(t, err)
	kept := map[string]bool{}
	for range 2 {
		run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, servicetest.Access))
		require.Equal(t, "completed", run.Status, "%+v", run.Failure)
		info, err := objects.GetInfo(withinWait(t), brought(t, r.Service, run).Raw.Ref)
		require.NoError(t, err)
		kept[info.NUID] = true
	}
	require.Len(t, kept, 1)
}

func uniqueNumbers(pages []event.Page) map[int]bool {
	numbers := map[int]bool{}
	for _, p := range pages {
		numbers[p.N] = true
	}
	return numbers
}

func TestALiveRunMakesExactlyThisRequest(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Key: key})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
	require.Equal(t, "completed", run.Status, "%+v", run.Failure)
	require.False(t, run.Completed.Replayed)

	calls := provider.Calls()
	require.Len(t, calls, 1)
	require.Equal(t, "POST", calls[0].Method)
	require.Equal(t, "/v1/research", calls[0].Path)
	require.Equal(t, "text/event-stream", calls[0].Header.Get("Accept"))
	require.Equal(t, "application/json", calls[0].Header.Get("Content-Type"))
	require.Equal(t, "Bearer "+key, calls[0].Header.Get("Authorization"))
	require.Equal(t, `{"query":"`+question+`","mode":"fast"}`, calls[0].Body)
	require.Zero(t, provider.Stats().Strays)
	requireLedger(t, r.Service, thread, 250, 0)

	stream, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	raw, err := r.Artifacts.Get(withinWait(t), refOf(brought(t, r.Service, run).Raw))
	require.NoError(t, err)
	require.Equal(t, stream, raw)
}

func TestTheKeyIsNowhereInTheNotebook(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Status: 500, Body: `{"error":"key ` + key + ` broke us"}`}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
	require.Equal(t, "failed", run.Status)
	body, err := json.Marshal(run)
	require.NoError(t, err)
	require.NotContains(t, string(body), key)
	require.Contains(t, run.Failure.Detail, "broke us")
}

func TestEveryEventOfTheCallIsInTheTrail(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Then: standin.Answer{
		Body: string(standin.Report{Markdown: "It is so [1].", Padding: 4 << 20, Pages: []standin.Page{{URL: "https://a.example/x"}}}.Stream()),
	}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
	require.Equal(t, "completed", run.Status, "%+v", run.Failure)

	said := readTrail(t, r, thread, run.ID, 1, run.Completed.Events)
	for i, e := range said {
		require.Equal(t, i+1, e.Seq)
		require.LessOrEqual(t, len(e.Data), trail.MaxData)
	}
	large := said[6]
	require.Equal(t, "analyzing:end", large.Name)
	require.Contains(t, string(large.Data), `"Analyzed a long page"`)
	require.Contains(t, string(large.Data), `"trimmed":4194`)
	last := said[len(said)-1]
	require.Equal(t, "complete", last.Name)
	require.NotContains(t, string(last.Data), "report")
}

func TestTwoHundredPagesWithFullTextEndInACompletedRun(t *testing.T) {
	t.Parallel()
	report := standin.Report{Markdown: "Much is known [1] [200]. " + strings.Repeat("A long sentence about it. ", 20_000), Padding: 4 << 20}
	for range 200 {
		report.Pages = append(report.Pages, standin.Page{
			URL: "https://www.example.org/" + strings.Repeat("p", 100) + "?page=" + string(rune('a'+len(report.Pages)%26)), Title: strings.Repeat("Title ", 20),
			Summary: strings.Repeat("A summary that goes on. ", 200), Claims: []string{strings.Repeat("It is claimed. ", 50)},
			FullText: strings.Repeat("The text of the page. ", 200) + string(rune('a'+len(report.Pages)%26)),
		})
	}
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Body: string(report.Stream())}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess))
	require.Equal(t, "completed", run.Status, "%+v", run.Failure)
	done := brought(t, r.Service, run)
	require.Len(t, done.Pages, 200)
	require.Empty(t, done.Report.Text)
	got, err := r.Artifacts.Get(withinWait(t), refOf(done.Report))
	require.NoError(t, err)
	require.Equal(t, report.Markdown, string(got))
	full, err := r.Artifacts.Get(withinWait(t), refOf(done.Pages[199].FullText))
	require.NoError(t, err)
	require.Equal(t, report.Pages[199].FullText, string(full))
	claims, err := r.Artifacts.Get(withinWait(t), refOf(*done.Pages[3].Claims.Blob))
	require.NoError(t, err)
	require.Contains(t, string(claims), "It is claimed.")
}

// brought is what a run brought, which its state does not hold.
func brought(t *testing.T, s *service.Service, run notebook.Run) event.RunCompleted {
	t.Helper()
	return servicetest.Event[event.RunCompleted](t, s, run.EndSeq)
}

func refOf(b event.Blob) artifact.Ref {
	return artifact.Ref{Ref: b.Ref, SHA256: b.SHA256, Size: b.Size}
}
