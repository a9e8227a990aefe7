/** The access levels of callers. Each level includes the ones before it. */
export const ACCESS_LEVELS = ["read", "write", "admin"] as const;
export type Access = (typeof ACCESS_LEVELS)[number];

/** A key for the HTTP edge, without its secret. */
export interface ApiKey {
  readonly id: string;
  /** Whose key it is, in a person's words. */
  readonly label: string;
  readonly access: Access;
  readonly projects: "all" | readonly string[];
  readonly createdAt: string;
  readonly expiresAt?: string | undefined;
  /** Recorded about once per minute. */
  readonly lastUsedAt?: string | undefined;
}

/** What is kept of a key: enough to recognise its secret, not enough to make it. */
export interface StoredApiKey extends ApiKey {
  readonly secretHash: string;
}
