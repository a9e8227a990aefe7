import { describe, expect, it } from "vitest";
import { metricRegistry } from "../../src/telemetry/metric-registry.ts";
import { prometheusText } from "../../src/telemetry/prometheus-text.ts";

describe("the metric registry", () => {
  it("adds up counters per set of labels, whatever the order of the labels", async () => {
    const registry = metricRegistry();
    const counter = registry.getMeter("x").createCounter("http.refused.total", { description: "Refused requests" });
    counter.add(1, { type: "timeout", operation: "a" });
    counter.add(2, { operation: "a", type: "timeout" });
    counter.add(1);
    expect(await registry.text()).toBe(
      [
        "# HELP http_refused_total Refused requests",
        "# TYPE http_refused_total counter",
        'http_refused_total{type="timeout",operation="a"} 3',
        "http_refused_total 1\n",
      ].join("\n"),
    );
  });

  it("counts a value in every bucket at or above it", async () => {
    const registry = metricRegistry();
    const histogram = registry.getMeter("x").createHistogram("latency", { advice: { explicitBucketBoundaries: [0.1, 1] } });
    for (const value of [0.05, 0.1, 0.5, 4]) histogram.record(value);
    expect(await registry.text()).toBe(
      [
        "# TYPE latency histogram",
        "latency_count 4",
        "latency_sum 4.65",
        'latency_bucket{le="0.1"} 2',
        'latency_bucket{le="1"} 3',
        'latency_bucket{le="+Inf"} 4\n',
      ].join("\n"),
    );
  });

  it("measures observable metrics when they are read, until their callback is removed", async () => {
    const registry = metricRegistry();
    let value = 1;
    const gauge = registry.getMeter("x").createObservableGauge("size");
    const report = async (result: { observe(value: number): void }) => result.observe(value);
    gauge.addCallback(report);
    expect(await registry.text()).toContain("size 1");
    value = 2;
    expect(await registry.text()).toContain("size 2");
    gauge.removeCallback(report);
    expect(await registry.text()).toBe("# no metrics yet\n");
  });

  it("drops label sets beyond its limit and keeps counting the others", async () => {
    const registry = metricRegistry();
    const counter = registry.getMeter("x").createCounter("calls");
    for (let id = 0; id < 2_500; id++) counter.add(1, { id });
    counter.add(1, { id: 0 });
    const text = await registry.text();
    expect(text.split("\n").filter((line) => line.startsWith("calls_total{"))).toHaveLength(2_000);
    expect(text).toContain('calls_total{id="0"} 2');
  });
});

describe("the Prometheus text", () => {
  it("escapes labels and help, and replaces characters that names cannot have", () => {
    const samples = [{ attributes: { "file.path": 'a"b\\c\nd' }, value: Number.POSITIVE_INFINITY }];
    expect(prometheusText([{ name: "1.a-b", help: "line\none", type: "gauge", samples }])).toBe(
      '# HELP _1_a_b line\\none\n# TYPE _1_a_b gauge\n_1_a_b{file_path="a\\"b\\\\c\\nd"} +Inf\n',
    );
  });
});
