package main

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long nothing must be written until the scheduler goes on: a write that it leaves to a goroutine begins within
// this time.
const quiet = 2 * time.Millisecond

// How long a write may take to come back through the watch.
const patience = 5 * time.Second

// Settled is the API as the scheduler writes to it: a write is under way until the caches have seen it.
//
// Kueue writes an admission while the next cycle goes on. If that one evicts the workload, its write may come first,
// and the admission, applied by the same owner, takes the eviction back; whoever needs the room then waits for ever for
// an eviction that was issued. Which of the two comes first is chance, and so would be all that follows.
type Settled struct {
	client.Client
	underWay atomic.Int64
}

// Status is where conditions and admissions are written to.
func (s *Settled) Status() client.SubResourceWriter {
	return &settledStatus{SubResourceWriter: s.Client.Status(), of: s}
}

type settledStatus struct {
	client.SubResourceWriter
	of *Settled
}

// Patch returns once the caches have what it wrote.
func (w *settledStatus) Patch(
	ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	w.of.underWay.Add(1)
	defer w.of.underWay.Add(-1)
	if err := w.SubResourceWriter.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	w.of.waitUntilSeen(ctx, object)
	return nil
}

func (s *Settled) waitUntilSeen(ctx context.Context, object client.Object) {
	written := version(object)
	seen, isObject := object.DeepCopyObject().(client.Object)
	for until := time.Now().Add(patience); isObject && time.Now().Before(until); time.Sleep(quiet / 10) {
		if err := s.Get(ctx, client.ObjectKeyFromObject(object), seen); err != nil || version(seen) >= written {
			return
		}
	}
}

func version(object client.Object) uint64 {
	number, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return number
}

// wait returns once nothing is under way, nor begins.
func (s *Settled) wait() {
	for since := time.Now(); time.Since(since) < quiet; time.Sleep(quiet / 10) {
		if s.underWay.Load() > 0 {
			since = time.Now()
		}
	}
}

// Clock is the time that whoever opens the gate has set; it stands still in between.
//
// Kueue writes times to the second and orders by them, so what happens to fall on both sides of a second's end would
// be ordered by chance.
type Clock struct {
	clock.RealClock
	seconds atomic.Int64
	writes  *Settled
}

// Now is the time that was set last.
func (c *Clock) Now() time.Time { return time.Unix(c.seconds.Load(), 0) }

// Since is by the time that was set last. The scheduler asks at the end of each part of a cycle, and goes on once all
// that it has written is known.
func (c *Clock) Since(since time.Time) time.Duration {
	if isCalledBy(".schedule") {
		c.writes.wait()
	}
	return c.Now().Sub(since)
}

// isCalledBy tells whether who calls the caller has a name with this text.
func isCalledBy(text string) bool {
	caller, _, _, ok := runtime.Caller(2)
	return ok && strings.Contains(runtime.FuncForPC(caller).Name(), text)
}
