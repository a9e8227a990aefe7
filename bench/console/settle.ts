import type { Page } from "playwright-core";

/**
 * Counts the calls of a page that have no complete answer. The stream of events never ends, so it is not counted, and the browser's own
 * "network idle" would never come.
 */
const COUNT_CALLS = `{
  const send = globalThis.fetch;
  globalThis.pendingCalls = 0;
  globalThis.fetch = async (input, init) => {
    if (String(input.url ?? input).includes("/v1/events")) return send(input, init);
    globalThis.pendingCalls++;
    try {
      const response = await send(input, init);
      const hasBody = ![101, 204, 205, 304].includes(response.status);
      return new Response(hasBody ? await response.arrayBuffer() : null, response);
    } finally {
      globalThis.pendingCalls--;
    }
  };
}`;

/** Frames without a call after which a page has settled: an answer causes the next call within two frames. */
const QUIET_FRAMES = 6;

const SETTLED = `new Promise((done) => {
  let quiet = 0;
  const look = () => {
    const isReady = globalThis.pendingCalls === 0 && document.querySelector("main h1") && !document.querySelector("main [aria-busy=true]");
    quiet = isReady ? quiet + 1 : 0;
    if (quiet > ${QUIET_FRAMES}) done();
    else requestAnimationFrame(() => setTimeout(look));
  };
  look();
})`;

/** Prepares a page for {@link settle}. Call it before the page is opened. */
export async function countCalls(page: Page): Promise<void> {
  await page.addInitScript(COUNT_CALLS);
}

/** Waits until the page shows the answers of all its calls. It counts frames, not time, so it does not depend on the speed of the machine. */
export async function settle(page: Page): Promise<void> {
  await page.evaluate(SETTLED);
}
