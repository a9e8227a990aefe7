import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Meter } from "@opentelemetry/api";

/** The process in numbers, under the names Prometheus users know. Returns what stops the measuring. */
export function observeProcess(meter: Meter): () => void {
  const startedAt = Date.now() / 1000 - process.uptime();
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  const gauge = (name: string, description: string, value: () => number) =>
    meter.createObservableGauge(name, { description }).addCallback((result) => result.observe(value()));

  meter.createObservableCounter("process.cpu_seconds", { description: "Processor time used, user and system" }).addCallback((result) => {
    const { user, system } = process.cpuUsage();
    result.observe((user + system) / 1e6);
  });
  gauge("process.resident_memory_bytes", "Memory the process holds", () => process.memoryUsage.rss());
  gauge("process.start_time_seconds", "When the process started, in seconds since 1970", () => startedAt);
  gauge("nodejs.heap_size_used_bytes", "Memory used by JavaScript objects", () => process.memoryUsage().heapUsed);
  gauge("nodejs.external_memory_bytes", "Memory of buffers outside the heap", () => process.memoryUsage().external);
  gauge("nodejs.eventloop_lag_p99_seconds", "How late the event loop is, 99th percentile since the last look", () => {
    const lag = delay.count > 0 ? delay.percentile(99) / 1e9 : 0;
    delay.reset();
    return lag;
  });
  return () => delay.disable();
}
