import { BlockList, isIP, isIPv4 } from "node:net";

/** The IANA special-purpose registry, and Azure's metadata service, whose address looks public. */
const IPV4: readonly (readonly [range: string, kind: string])[] = [
  ["0.0.0.0/8", "an unspecified address"],
  ["10.0.0.0/8", "a private address"],
  ["100.64.0.0/10", "a shared (carrier NAT) address"],
  ["127.0.0.0/8", "a loopback address"],
  ["168.63.129.16/32", "a cloud metadata address"],
  ["169.254.0.0/16", "a link-local (cloud metadata) address"],
  ["172.16.0.0/12", "a private address"],
  ["192.0.0.0/24", "a protocol assignment"],
  ["192.0.2.0/24", "a documentation address"],
  ["192.88.99.0/24", "a 6to4 relay address"],
  ["192.168.0.0/16", "a private address"],
  ["198.18.0.0/15", "a benchmarking address"],
  ["198.51.100.0/24", "a documentation address"],
  ["203.0.113.0/24", "a documentation address"],
  ["224.0.0.0/4", "a multicast address"],
  ["240.0.0.0/4", "a reserved or broadcast address"],
];

/** Only 2000::/3 is public at all; other ranges are listed for clear messages. */
const IPV6: readonly (readonly [range: string, kind: string])[] = [
  ["::/128", "an unspecified address"],
  ["::1/128", "a loopback address"],
  ["fc00::/7", "a unique local address"],
  ["fe80::/10", "a link-local address"],
  ["ff00::/8", "a multicast address"],
  ["2001::/23", "a Teredo or protocol address"],
  ["2001:db8::/32", "a documentation address"],
  ["2002::/16", "a 6to4 address"],
  ["3fff::/20", "a documentation address"],
];

export interface Network {
  readonly family: "ipv4" | "ipv6";
  readonly list: BlockList;
}

/** Made with the first check: loading the module should cost nothing. */
let ranges:
  | { readonly special: readonly { kind: string; net: Network }[]; readonly publicIpv6: Network }
  | undefined;
/** IPv4-mapped, and NAT64's well-known prefix: the IPv4 address inside is checked. */
const EMBEDDED_IPV4 = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

/** A range such as `10.0.0.0/8` or `fd00::/8`, or a single address. @throws a TypeError or RangeError for anything else */
export function network(range: string): Network {
  const [base = "", bits, ...rest] = range.split("/");
  const family = isIPv4(base) ? "ipv4" : "ipv6";
  const known = isIP(base) !== 0 && !base.includes("%");
  if (!known || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) {
    throw new TypeError("not a range of addresses");
  }
  const list = new BlockList();
  if (bits === undefined) list.addAddress(base, family);
  else list.addSubnet(base, Number(bits), family);
  return { family, list };
}

/** Whether an address in the form that {@link canonicalAddress} gives is in the range. */
export function contains({ family, list }: Network, address: string): boolean {
  // A BlockList treats IPv4 addresses as mapped ones: ::/0 would contain them all.
  return family === (isIPv4(address) ? "ipv4" : "ipv6") && list.check(address, family);
}

/**
 * One spelling for each address: shortest IPv6, and the IPv4 address where one is mapped (`::ffff:10.0.0.1`) or reached
 * through NAT64. `undefined` for a text that is not an address, or has a zone (`fe80::1%eth0`).
 */
export function canonicalAddress(address: string): string | undefined {
  if (isIPv4(address)) return address;
  if (isIP(address) === 0 || address.includes("%")) return undefined;
  const short = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const inside = EMBEDDED_IPV4.exec(short);
  if (!inside) return short;
  const bytes = inside.slice(1).flatMap((group) => {
    const word = Number.parseInt(group, 16);
    return [word >> 8, word & 0xff];
  });
  return bytes.join(".");
}

/** Reason why a canonical address is not a public one, as `a private address`; `undefined` for a public one. */
export function specialKind(address: string): string | undefined {
  ranges ??= {
    special: [...IPV4, ...IPV6].map(([range, kind]) => ({ kind, net: network(range) })),
    publicIpv6: network("2000::/3"),
  };
  const known = ranges.special.find(({ net }) => contains(net, address));
  if (known) return known.kind;
  return isIPv4(address) || contains(ranges.publicIpv6, address) ? undefined : "a special-purpose address";
}
