import type { Config } from "../../config/schema.ts";
import { isLoopback } from "../../text/networks.ts";
import type { ApiClient } from "./api-client.ts";

/**
 * Returns a client of the server at `url`. Its credential is `api.key`, or the local token if the server is on this machine: the token must
 * never leave it, whatever address is configured.
 */
export async function configuredClient({ api, dataDir }: Config, url: string): Promise<ApiClient> {
  const [{ apiClient }, { localToken }] = await Promise.all([import("./api-client.ts"), import("../../stores/file/local-token.ts")]);
  if (api.key !== undefined) return apiClient({ url, credential: async () => api.key });
  if (!isLoopback(new URL(url).hostname.replace(/^\[(.*)\]$/, "$1"))) return apiClient({ url });
  const token = localToken({ dataDir });
  return apiClient({ url, credential: token.read }); // read for every call: the server may create or rotate it meanwhile
}
