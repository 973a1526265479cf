// Apache's Go client as a measured process of the benchmark: it takes the options of "bench client" and prints its
// line. Sends are asynchronous and in a closed loop, where each callback makes the next send. The server is a name
// server.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const (
	topic = "BenchTopic"
	group = "bench-producers"
	// One request in so many is timed.
	sampled = 7
)

type line struct {
	Client      string  `json:"client"`
	InFlight    int     `json:"in_flight"`
	Body        int     `json:"body"`
	Workers     int     `json:"workers"`
	Requests    uint64  `json:"requests"`
	WallNs      int64   `json:"wall_ns"`
	CPUNs       int64   `json:"cpu_ns"`
	P50Ns       int64   `json:"p50_ns"`
	P99Ns       int64   `json:"p99_ns"`
	Writes      *uint64 `json:"writes"`
	Allocations *uint64 `json:"allocations"`
	Threads     uint64  `json:"threads"`
	PeakRss     uint64  `json:"peak_rss_bytes"`
	FirstNs     *int64  `json:"first_ns"`
}

type bench struct {
	producer  rocketmq.Producer
	body      []byte
	answered  atomic.Uint64
	measuring atomic.Bool
	stopped   atomic.Bool
	times     []int64
	timed     atomic.Int64
}

func main() {
	server := flag.String("server", "", "the name server")
	inFlight := flag.Int("in-flight", 256, "sends that wait for an answer at the same time")
	body := flag.Int("body", 1024, "bytes of each body")
	workers := flag.Int("workers", 2, "threads that run Go code")
	warmUp := flag.Int("warm-up-ms", 500, "load before the measured part")
	millis := flag.Int("millis", 700, "the measured part")
	connections := flag.Int("connections", 1, "only 1 is supported")
	pending := flag.Int("pending", 0, "only 0 is supported")
	flag.Parse()
	if *connections != 1 || *pending != 0 {
		fail(fmt.Errorf("one connection, and nothing held back"))
	}
	runtime.GOMAXPROCS(*workers)
	rlog.SetLogLevel("fatal")

	started, err := rocketmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{*server})),
		producer.WithGroupName(group))
	fail(err)
	fail(started.Start())
	b := &bench{producer: started, body: slices.Repeat([]byte{'.'}, *body), times: make([]int64, 1<<20)}
	_, err = started.SendSync(context.Background(), b.message())
	fail(err)
	first := sinceStart()
	for range *inFlight {
		b.sendNext()
	}
	time.Sleep(time.Duration(*warmUp) * time.Millisecond)
	measured := b.measure(time.Duration(*millis) * time.Millisecond)
	measured.InFlight, measured.Body, measured.Workers, measured.FirstNs = *inFlight, *body, *workers, first
	fail(json.NewEncoder(os.Stdout).Encode(measured))
	// The client's own end takes seconds, and the line is out.
	os.Exit(0)
}

func (b *bench) measure(duration time.Duration) line {
	b.measuring.Store(true)
	requests, cpu, started := b.answered.Load(), cpuNs(), time.Now()
	time.Sleep(duration)
	requests, cpu = b.answered.Load()-requests, cpuNs()-cpu
	wall := time.Since(started).Nanoseconds()
	b.measuring.Store(false)
	b.stopped.Store(true)
	times := slices.Sorted(slices.Values(b.times[:min(int(b.timed.Load()), len(b.times))]))
	quantile := func(percent int) int64 {
		if len(times) == 0 {
			return 0
		}
		return times[len(times)*percent/100]
	}
	return line{
		Client: "go", Requests: requests, WallNs: wall, CPUNs: cpu, P50Ns: quantile(50), P99Ns: quantile(99),
		Threads: status("Threads:"), PeakRss: status("VmHWM:") * 1024,
	}
}

func (b *bench) message() *primitive.Message {
	return primitive.NewMessage(topic, b.body)
}

func (b *bench) sendNext() {
	started := time.Now()
	answered := func(_ context.Context, result *primitive.SendResult, err error) {
		if b.stopped.Load() {
			return
		}
		fail(err)
		if result.Status != primitive.SendOK {
			fail(fmt.Errorf("not stored: %v", result))
		}
		count := b.answered.Add(1)
		if count%sampled == 0 && b.measuring.Load() {
			if place := b.timed.Add(1) - 1; place < int64(len(b.times)) {
				b.times[place] = time.Since(started).Nanoseconds()
			}
		}
		b.sendNext()
	}
	if err := b.producer.SendAsync(context.Background(), answered, b.message()); err != nil && !b.stopped.Load() {
		fail(err)
	}
}

// User and system time of all threads of the process.
func cpuNs() int64 {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// A number of /proc/self/status.
func status(name string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	fail(err)
	for entry := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(entry, name); found {
			value, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			fail(err)
			return value
		}
	}
	fail(fmt.Errorf("/proc/self/status has no %s", name))
	return 0
}

// Nanoseconds since the process was started, where its starter has said when that was.
func sinceStart() *int64 {
	started, err := strconv.ParseInt(os.Getenv("BENCH_STARTED_UNIX_NS"), 10, 64)
	if err != nil {
		return nil
	}
	nanos := time.Now().UnixNano() - started
	return &nanos
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go producer:", err)
		os.Exit(1)
	}
}
