// Command dra-allocator tells what kube-scheduler's allocator of devices answers.
//
// It reads one world a line from its standard input and writes one answer a line to its standard output, both as
// JSON. A world is one node and all that the allocator looks at; features that it does not name are those of
// kube-scheduler without settings. Nothing runs beside it, and nothing is kept from one world to the next.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/dynamic-resource-allocation/structured"
)

const (
	worldSeconds  = 5
	longestLine   = 64 << 20
	celCacheSize  = 10 // as kube-scheduler has it
	anyShareID    = types.UID("share")
	timeoutAnswer = "timeout"
)

// World is what one call of the allocator sees. Claims are allocated in this order.
type World struct {
	Node      *corev1.Node                   `json:"node"`
	Slices    []*resourceapi.ResourceSlice   `json:"slices"`
	Classes   []*resourceapi.DeviceClass     `json:"classes"`
	Claims    []*resourceapi.ResourceClaim   `json:"claims"`
	Allocated []*resourceapi.ResourceClaim   `json:"allocated"`
	Rules     []*resourceapi.DeviceTaintRule `json:"rules"`
	Features  json.RawMessage                `json:"features"`
}

// Answer has one result for each claim, or none at all. Share ids are random, so all are written alike.
type Answer struct {
	Results []resourceapi.AllocationResult `json:"results"`
	Error   string                         `json:"error"`
}

type classLister []*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

func main() {
	// The stable variant runs only where features are switched off that are on by default.
	structured.EnableAllocators("incubating", "experimental")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		encoded, err := json.Marshal(answer(lines.Bytes()))
		if err != nil {
			log.Fatal(err)
		}
		if _, err := out.Write(append(encoded, '\n')); err != nil {
			log.Fatal(err)
		}
		// Who asks may wait for each answer before it writes the next world.
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func answer(line []byte) (said Answer) {
	defer func() {
		if problem := recover(); problem != nil {
			said = Answer{Error: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), worldSeconds*time.Second)
	defer cancel()
	results, err := allocate(ctx, line)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Answer{Error: timeoutAnswer}
	case err != nil:
		return Answer{Error: err.Error()}
	}
	for i := range results {
		for j := range results[i].Devices.Results {
			if share := &results[i].Devices.Results[j].ShareID; *share != nil {
				id := anyShareID
				*share = &id
			}
		}
	}
	return Answer{Results: results}
}

func allocate(ctx context.Context, line []byte) ([]resourceapi.AllocationResult, error) {
	var world World
	if err := json.Unmarshal(line, &world); err != nil {
		return nil, fmt.Errorf("no world: %w", err)
	}
	features := structured.Features{
		AdminAccess:             true,
		ConsumableCapacity:      true,
		DeviceBindingAndStatus:  true,
		DeviceTaints:            true,
		FractionalCapacityRange: true,
		PartitionableDevices:    true,
		PrioritizedList:         true,
	}
	if len(world.Features) > 0 {
		if err := json.Unmarshal(world.Features, &features); err != nil {
			return nil, fmt.Errorf("no features: %w", err)
		}
	}
	seen, err := withTaintsOfRules(ctx, world.Slices, world.Rules)
	if err != nil {
		return nil, err
	}
	cache := cel.NewCache(celCacheSize, cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	})
	state := allocatedState(world.Allocated, features.ConsumableCapacity)
	allocator, err := structured.NewAllocator(ctx, features, state, classLister(world.Classes), seen, cache)
	if err != nil {
		return nil, err
	}
	return allocator.Allocate(ctx, world.Node, world.Claims)
}

// allocatedState is what kube-scheduler's cache of claims comes to.
func allocatedState(claims []*resourceapi.ResourceClaim, sharesCount bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if !sharesCount || result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

// withTaintsOfRules runs Kubernetes' own tracker, which needs a client; it returns the slices in the order that it got.
func withTaintsOfRules(
	ctx context.Context, given []*resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule,
) ([]*resourceapi.ResourceSlice, error) {
	if len(rules) == 0 {
		return given, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := fake.NewSimpleClientset()
	for _, slice := range given {
		if err := client.Tracker().Add(slice); err != nil {
			return nil, err
		}
	}
	for _, rule := range rules {
		if err := client.Tracker().Add(rule); err != nil {
			return nil, err
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	tracked, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules:   true,
		EnableConsumableCapacity: true,
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		TaintInformer:            factory.Resource().V1().DeviceTaintRules(),
	})
	if err != nil {
		return nil, err
	}
	defer tracked.Stop()
	factory.Start(ctx.Done())
	select {
	case <-tracked.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	seen, err := tracked.ListPatchedResourceSlices()
	if err != nil {
		return nil, err
	}
	place := make(map[string]int, len(given))
	for i, slice := range given {
		place[slice.Name] = i
	}
	slices.SortFunc(seen, func(a, b *resourceapi.ResourceSlice) int { return place[a.Name] - place[b.Name] })
	return seen, nil
}
