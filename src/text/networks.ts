import { BlockList, isIP } from "node:net";

/** Returns whether an address or host name means this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^::ffff:/, "");
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** Returns whether a text is an address or a CIDR range. `/0` is refused: a range of all addresses excludes nobody. */
export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== undefined;
}

/** Returns a test of whether an address lies in one of these networks. Texts that are no network match nothing. */
export function networkMatcher(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of networks) {
    const network = parseNetwork(text);
    if (network) list.addSubnet(network.address, network.bits, network.family);
  }
  return (address) => {
    const plain = withoutZone(address);
    const version = isIP(plain);
    return version !== 0 && list.check(plain, version === 4 ? "ipv4" : "ipv6");
  };
}

/**
 * Returns the part of an address that one party controls: the whole of an IPv4 address, the first 64 bits of an IPv6 address. A client
 * with one IPv6 address usually has all 2^64 of its network, so a limit per IPv6 address would not limit it.
 */
export function addressGroup(address: string): string {
  const plain = withoutZone(address)
    .toLowerCase()
    .replace(/^::ffff:(?=\d+\.)/, "");
  if (isIP(plain) !== 6) return plain;
  const [head = "", tail = ""] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const last = tail === "" ? [] : tail.split(":");
  const width = (parts: readonly string[]) => parts.length + (parts.at(-1)?.includes(".") ? 1 : 0);
  const zeros = plain.includes("::") ? new Array<string>(8 - width(groups) - width(last)).fill("0") : [];
  const leading = [...groups, ...zeros, ...last].slice(0, 4);
  return `${leading.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

function parseNetwork(text: string): { readonly address: string; readonly bits: number; readonly family: "ipv4" | "ipv6" } | undefined {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || rest.length > 0) return undefined;
  const most = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : 0;
  if (prefix < 1 || prefix > most) return undefined;
  return { address, bits: prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

/** Removes the interface of a link-local address: `fe80::1%eth0`. */
function withoutZone(address: string): string {
  const zone = address.indexOf("%");
  return zone === -1 ? address : address.slice(0, zone);
}
