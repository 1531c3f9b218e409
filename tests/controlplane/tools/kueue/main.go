// Command kueue runs the core controllers and the scheduler of Kueue by a configuration file, and if asked its controller
// of Jobs.
//
// It is put together as Kueue's own performance test does (test/performance/scheduler/minimalkueue), which cannot be
// used as it is: it reads no configuration. Without webhooks there is nothing to certify: whoever creates a Workload
// plays the part of its job, and Jobs are created suspended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	zaplog "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuealpha "sigs.k8s.io/kueue/apis/kueue/v1alpha1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	jobs "sigs.k8s.io/kueue/pkg/controller/jobs/job"
	"sigs.k8s.io/kueue/pkg/controller/tas"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	_ "sigs.k8s.io/kueue/pkg/features" // makes the feature gates known
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/fairsharing"
	"sigs.k8s.io/kueue/pkg/util/waitforpodsready"
)

// As in the configuration that Kueue is installed with; of all other kinds one at a time, so that order is kept.
const workloadWorkers, jobWorkers = 5, 5

func main() {
	file := flag.String("config", "", "a file with kueue's Configuration; its defaults without one")
	gates := flag.String("feature-gates", "", "gate=true,…; over those of the file")
	health := flag.String("health-probe-bind-address", "0", "where /readyz is served")
	hasTopology := flag.Bool("topology", false, "run the controllers for topology too")
	hasJobs := flag.Bool("jobs", false, "run the controller of Jobs too")
	gate := flag.String("gate", "", "an address where a gate before the scheduler is opened; without one it has none")
	logging := zap.Options{
		Development: true,
		Level:       zaplog.NewAtomicLevelAt(zapcore.ErrorLevel),
		TimeEncoder: zapcore.RFC3339NanoTimeEncoder,
	}
	logging.BindFlags(flag.CommandLine)
	flag.Parse() // --kubeconfig is controller-runtime's
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := run(ctrl.SetupSignalHandler(), *file, *gates, *health, *gate, *hasTopology, *hasJobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, gates, health, gate string, hasTopology, hasJobs bool) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	utilruntime.Must(kueuealpha.AddToScheme(scheme))
	utilruntime.Must(configapi.AddToScheme(scheme))
	config, err := read(scheme, file)
	if err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(config.FeatureGates); err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(gates); err != nil {
		return err
	}
	manager, err := newManager(scheme, config, health)
	if err != nil {
		return err
	}
	if err := setUp(ctx, manager, config, gate, hasTopology); err != nil {
		return err
	}
	if hasJobs {
		if err := setUpJobs(ctx, manager); err != nil {
			return err
		}
	}
	return manager.Start(ctx)
}

func read(scheme *runtime.Scheme, file string) (*configapi.Configuration, error) {
	config := &configapi.Configuration{}
	if file == "" {
		scheme.Default(config)
		return config, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	return config, runtime.DecodeInto(decoder, text, config)
}

func newManager(scheme *runtime.Scheme, config *configapi.Configuration, health string) (ctrl.Manager, error) {
	client, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	// One bucket for all kinds, as kueue has it; each client would have one of its own.
	connection := config.ClientConnection
	client.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(*connection.QPS, int(*connection.Burst))
	workers := map[string]int{}
	for kind, n := range map[string]int{
		"Workload": workloadWorkers, "LocalQueue": 1, "Cohort": 1, "ClusterQueue": 1, "ResourceFlavor": 1, "Topology": 1,
	} {
		workers[kueue.GroupVersion.WithKind(kind).GroupKind().String()] = n
	}
	workers["Job.batch"] = jobWorkers
	manager, err := ctrl.NewManager(client, ctrl.Options{
		Scheme:                 scheme,
		Controller:             crconfig.Controller{SkipNameValidation: ptr.To(true), GroupKindConcurrency: workers},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: health,
	})
	if err != nil {
		return nil, err
	}
	return manager, manager.AddReadyzCheck("started", func(*http.Request) error {
		select {
		case <-manager.Elected(): // closed once all have started, without an election too
			return nil
		default:
			return errors.New("not all have started")
		}
	})
}

func setUp(
	ctx context.Context, manager ctrl.Manager, config *configapi.Configuration, gateAddress string, hasTopology bool,
) error {
	if err := indexer.Setup(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	if hasTopology {
		if err := tasindexer.SetupIndexes(ctx, manager.GetFieldIndexer()); err != nil {
			return err
		}
	}
	timestamp := configapi.EvictionTimestamp
	blocks := false
	if waiting := config.WaitForPodsReady; waiting != nil {
		timestamp = *waiting.RequeuingStrategy.Timestamp
		blocks = waitforpodsready.Enabled(waiting) && *waiting.BlockAdmission
	}
	cache := schdcache.New(manager.GetClient(),
		schdcache.WithPodsReadyTracking(blocks),
		schdcache.WithFairSharing(fairsharing.Enabled(config.FairSharing)),
		schdcache.WithAdmissionFairSharing(config.AdmissionFairSharing),
	)
	var checker qcache.StatusChecker = cache
	var now clock.Clock = clock.RealClock{}
	var batching []qcache.RequeuerOption
	writes := manager.GetClient()
	settled := &Settled{Client: writes}
	gate := &Gate{
		StatusChecker: cache,
		clock:         &Clock{writes: settled},
		cycles:        Cycles{of: map[kueue.ClusterQueueReference]int{}},
	}
	if gateAddress != "" {
		// Who waits comes back at once: behind a gate there is nothing to be gained by doing it once a second.
		checker, now, writes = gate, gate.clock, settled
		batching = append(batching, qcache.WithBatchPeriod(time.Millisecond))
	}
	requeuer := qcache.NewRequeuer(batching...)
	if err := manager.Add(requeuer); err != nil {
		return err
	}
	expectations := preemptexpectations.New()
	queues := qcache.NewManager(manager.GetClient(), checker, requeuer,
		qcache.WithPodsReadyRequeuingTimestamp(timestamp),
		qcache.WithAdmissionFairSharing(config.AdmissionFairSharing),
		qcache.WithPreemptionExpectations(expectations),
	)
	controllers := manager
	if gateAddress != "" {
		controllers = &Manager{Manager: manager, gate: gate}
		gate.queues = queues
		if err := gate.serve(ctx, gateAddress); err != nil {
			return err
		}
	}
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	if name, err := core.SetupControllers(controllers, queues, cache, config, nil, expectations, nil); err != nil {
		return fmt.Errorf("the controller of %s: %w", name, err)
	}
	if hasTopology {
		if name, err := tas.SetupControllers(manager, queues, cache, config, nil); err != nil {
			return fmt.Errorf("the controller of %s: %w", name, err)
		}
	}
	return manager.Add(scheduler.New(queues, cache, writes,
		manager.GetEventRecorderFor(constants.AdmissionName),
		scheduler.WithPodsReadyRequeuingTimestamp(timestamp),
		scheduler.WithFairSharing(config.FairSharing),
		scheduler.WithAdmissionFairSharing(config.AdmissionFairSharing),
		scheduler.WithPreemptionExpectations(expectations),
		scheduler.WithClock(nil, now),
	))
}

func setUpJobs(ctx context.Context, manager ctrl.Manager) error {
	if err := jobs.SetupIndexes(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	recorder := manager.GetEventRecorderFor("kueue-jobs")
	reconciler, err := jobs.NewReconciler(ctx, manager.GetClient(), manager.GetFieldIndexer(), recorder)
	if err != nil {
		return err
	}
	return reconciler.SetupWithManager(manager)
}
