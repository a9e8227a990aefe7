import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A small shop. The tour runs on it instead of the user's files, so that it always has the same results. */
const FILES: Readonly<Record<string, string>> = {
  "src/payment.ts": `/** Charges a card. Waits twice as long after each failed attempt, because the bank limits requests. */
export async function charge(card: Card, cents: number): Promise<Receipt> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await bank.charge(card, cents);
    } catch (error) {
      if (attempt === 5 || !isTemporary(error)) throw error;
      await sleep(100 * 2 ** attempt);
    }
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof BankError && error.status >= 500;
}
`,
  "src/cart.ts": `/** Adds up the items in cents, then rounds once: rounding each item loses a cent now and then. */
export function total(items: readonly Item[], taxRate: number): number {
  const net = items.reduce((sum, { cents, count }) => sum + cents * count, 0);
  return Math.round(net * (1 + taxRate));
}
`,
  "src/session.py": `def renew(session, now):
    """Extends a session that is in use; an idle one expires after eight hours."""
    if now - session.last_seen > timedelta(hours=8):
        raise Expired(session.id)
    session.last_seen = now
    return session
`,
  "README.md": "# Shop\n\nA cart, payments and sessions.\n",
};

/** Writes the sample project and returns its folder. */
export function writeSampleProject(parent: string): string {
  const folder = join(parent, "shop");
  for (const [name, content] of Object.entries(FILES)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}
