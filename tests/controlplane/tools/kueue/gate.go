package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
)

// Gate keeps all ClusterQueues from the scheduler until it is opened.
//
// Objects come one after the other, and the scheduler would begin with the first. Behind a closed gate all of them
// are in their queues before its first cycle.
type Gate struct {
	qcache.StatusChecker
	clock  *Clock
	queues *qcache.Manager
	isOpen atomic.Bool
	cycles Cycles
}

// Cycles counts how often the scheduler has looked for the head of each queue.
type Cycles struct {
	sync.Mutex
	of   map[kueue.ClusterQueueReference]int
	most int
}

func (c *Cycles) add(name kueue.ClusterQueueReference) {
	c.Lock()
	defer c.Unlock()
	c.of[name]++
	c.most = max(c.most, c.of[name])
}

func (c *Cycles) count() int {
	c.Lock()
	defer c.Unlock()
	return c.most
}

// ClusterQueueActive is asked under the lock of the queues, by the scheduler that looks for heads and by metrics.
func (g *Gate) ClusterQueueActive(name kueue.ClusterQueueReference) bool {
	isActive := g.isOpen.Load() && g.StatusChecker.ClusterQueueActive(name)
	if isCalledBy(".heads") {
		g.cycles.add(name)
	}
	return isActive
}

// Manager is what the controllers are set up with: while the gate is open, none of them sees a Cohort.
//
// Kueue looks at a Cohort about a second after anything below it has changed, and then brings back all that wait below
// it. Whether that is in the middle of a round is chance.
type Manager struct {
	ctrl.Manager
	gate *Gate
}

// GetClient is the client of the controllers.
func (m *Manager) GetClient() client.Client {
	return &patientClient{Client: m.Manager.GetClient(), gate: m.gate}
}

type patientClient struct {
	client.Client
	gate *Gate
}

// Get waits with a Cohort until the gate is closed.
func (c *patientClient) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if _, isCohort := object.(*kueue.Cohort); isCohort {
		for c.gate.isOpen.Load() && ctx.Err() == nil {
			time.Sleep(quiet)
		}
	}
	return c.Client.Get(ctx, key, object, options...)
}

// bringBack puts all that wait into their queues again, as otherwise some would be there and some not, by chance.
func (g *Gate) bringBack() {
	qcache.NotifyRetryInadmissible(g.queues, sets.New(g.queues.GetClusterQueueNames()...))
	last := -1
	for since := time.Now(); time.Since(since) < 10*quiet; time.Sleep(quiet) {
		n := 0
		for _, workloads := range g.queues.DumpInadmissible() {
			n += len(workloads)
		}
		if n != last {
			last, since = n, time.Now()
		}
	}
}

// set opens or closes the gate between two looks of the scheduler at its queues, and makes it look.
func (g *Gate) set(isOpen bool) {
	g.queues.Lock()
	defer g.queues.Unlock()
	g.isOpen.Store(isOpen)
	g.queues.Broadcast()
}

// Seen is what the gate tells: in how many cycles the scheduler has looked for heads, how many workloads wait in each
// ClusterQueue, and how many of them are not tried again before something changes.
type Seen struct {
	Cycles  int            `json:"cycles"`
	Pending map[string]int `json:"pending"`
	Parked  map[string]int `json:"parked"`
}

// ServeHTTP answers POST /open?now=SECONDS, POST /close and GET /.
func (g *Gate) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	switch in.URL.Path {
	case "/open":
		now, err := strconv.ParseInt(in.URL.Query().Get("now"), 10, 64)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		g.clock.seconds.Store(now)
		g.bringBack()
		g.set(true)
	case "/close":
		g.set(false)
	}
	seen := Seen{Cycles: g.cycles.count(), Pending: map[string]int{}, Parked: map[string]int{}}
	for name, workloads := range g.queues.DumpInadmissible() {
		seen.Parked[string(name)] = len(workloads)
	}
	for _, name := range g.queues.GetClusterQueueNames() {
		queue := &kueue.ClusterQueue{}
		queue.Name = string(name)
		if n, err := g.queues.Pending(queue); err == nil {
			seen.Pending[queue.Name] = n
		}
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(seen)
}

// serve answers at an address until the context ends.
func (g *Gate) serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: g}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() { _ = server.Serve(listener) }()
	return nil
}
