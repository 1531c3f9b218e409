// Command promql asks Prometheus's own engine what queries come to over scrapes that are given to it.
//
// It reads one JSON object from its standard input and writes one to its standard output. No server runs and
// nothing is stored: samples are kept in memory, as Prometheus would have kept them after these scrapes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Scrape is what a target has answered at one time.
type Scrape struct {
	Seconds     float64           `json:"seconds"`
	Labels      map[string]string `json:"labels"`
	ContentType string            `json:"contentType"`
	Text        string            `json:"text"`
}

// Query is evaluated at every step from From to To, all in seconds.
type Query struct {
	Expr string  `json:"expr"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Step float64 `json:"step"`
}

// Asked is the input. Rules is the text of a file of rules, empty for none.
type Asked struct {
	Scrapes []Scrape `json:"scrapes"`
	Queries []Query  `json:"queries"`
	Rules   string   `json:"rules"`
}

// Series is one line of an answer; each point is a time in seconds and a value as text.
type Series struct {
	Labels map[string]string `json:"labels"`
	Points [][2]string       `json:"points"`
}

// Selected is a metric that a query reads, and the labels by which it chooses among its series.
type Selected struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
}

// Answer is what a query came to.
type Answer struct {
	Error    string     `json:"error"`
	Warnings []string   `json:"warnings"`
	Series   []Series   `json:"series"`
	Selected []Selected `json:"selected"`
}

// Told is the output. Rules are the mistakes in the file of rules.
type Told struct {
	Answers []Answer `json:"answers"`
	Rules   []string `json:"rules"`
}

type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type kept struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// samples keeps series by their labels.
type samples map[string]*kept

func (s samples) add(of labels.Labels, at int64, v float64) {
	key := of.String()
	if s[key] == nil {
		s[key] = &kept{labels: of}
	}
	s[key].samples = append(s[key].samples, sample{at, v})
}

// scraped reads one scrape; a series that its target no longer tells of ends there.
func (s samples) scraped(one Scrape, before map[string]labels.Labels) (map[string]labels.Labels, error) {
	at, there := int64(one.Seconds*1000), map[string]labels.Labels{}
	table := labels.NewSymbolTable()
	reader, err := textparse.New([]byte(one.Text), one.ContentType, table, textparse.ParserOptions{})
	if err != nil {
		return nil, err
	}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, v := reader.Series()
		var read labels.Labels
		reader.Labels(&read)
		builder := labels.NewBuilder(read)
		for name, text := range one.Labels {
			builder.Set(name, text)
		}
		all := builder.Labels()
		key := all.String()
		if _, twice := there[key]; twice {
			return nil, fmt.Errorf("told twice: %s", key)
		}
		there[key] = all
		s.add(all, at, v)
	}
	for key, gone := range before {
		if _, still := there[key]; !still {
			s.add(gone, at, math.Float64frombits(value.StaleNaN))
		}
	}
	return there, nil
}

// Querier and the rest make samples a storage.Queryable.
func (s samples) Querier(_, _ int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ samples samples }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, one := range q.samples {
		fits := true
		for _, matcher := range matchers {
			fits = fits && matcher.Matches(one.labels.Get(matcher.Name))
		}
		if fits {
			found = append(found, storage.NewListSeries(one.labels, one.samples))
		}
	}
	sort.Slice(found, func(i, j int) bool { return labels.Compare(found[i].Labels(), found[j].Labels()) < 0 })
	return &set{series: found}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.New("not asked here")
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.New("not asked here")
}

func (querier) Close() error { return nil }

type set struct {
	series []storage.Series
	next   int
}

func (s *set) Next() bool                      { s.next++; return s.next <= len(s.series) }
func (s *set) At() storage.Series              { return s.series[s.next-1] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

func answer(engine *promql.Engine, kept samples, asked Query) Answer {
	told := Answer{Series: []Series{}, Selected: []Selected{}, Warnings: []string{}}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(asked.Expr)
	if err != nil {
		told.Error = err.Error()
		return told
	}
	for _, matchers := range parser.ExtractSelectors(expr) {
		var one Selected
		for _, matcher := range matchers {
			if matcher.Name == model.MetricNameLabel {
				one.Name = matcher.Value
			} else {
				one.Labels = append(one.Labels, matcher.Name)
			}
		}
		told.Selected = append(told.Selected, one)
	}
	at := func(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }
	step := time.Duration(asked.Step * float64(time.Second))
	query, err := engine.NewRangeQuery(context.Background(), kept, nil, asked.Expr, at(asked.From), at(asked.To), step)
	if err != nil {
		told.Error = err.Error()
		return told
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		told.Error = result.Err.Error()
		return told
	}
	for _, warning := range result.Warnings {
		told.Warnings = append(told.Warnings, warning.Error())
	}
	matrix, err := result.Matrix()
	if err != nil {
		told.Error = err.Error()
		return told
	}
	for _, line := range matrix {
		one := Series{Labels: line.Metric.Map(), Points: [][2]string{}}
		for _, point := range line.Floats {
			seconds := strconv.FormatFloat(float64(point.T)/1000, 'f', -1, 64)
			one.Points = append(one.Points, [2]string{seconds, strconv.FormatFloat(point.F, 'g', -1, 64)})
		}
		told.Series = append(told.Series, one)
	}
	return told
}

func run() error {
	var asked Asked
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	kept, before := samples{}, map[string]map[string]labels.Labels{}
	for i, one := range asked.Scrapes {
		target := labels.FromMap(one.Labels).String()
		there, err := kept.scraped(one, before[target])
		if err != nil {
			return fmt.Errorf("scrape %d: %w", i, err)
		}
		before[target] = there
	}
	told := Told{Answers: []Answer{}, Rules: []string{}}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{}),
	})
	for _, query := range asked.Queries {
		told.Answers = append(told.Answers, answer(engine, kept, query))
	}
	if asked.Rules != "" {
		_, mistakes := rulefmt.Parse([]byte(asked.Rules), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		for _, mistake := range mistakes {
			told.Rules = append(told.Rules, mistake.Error())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
