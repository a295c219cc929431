import { Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createGuard, sendSigned } from "../../src/http/index.js";
import { failure, plain, Target, unguarded } from "./bench.js";

/** First and last address of each range, in every known notation. */
const REFUSED: readonly string[] = [
  "0.0.0.0",
  "0.255.255.255",
  "10.0.0.0",
  "10.255.255.255",
  "100.64.0.0",
  "100.127.255.255",
  "127.0.0.0",
  "127.0.0.1",
  "127.255.255.255",
  "168.63.129.16",
  "169.254.0.0",
  "169.254.169.254",
  "169.254.170.2",
  "169.254.255.255",
  "172.16.0.0",
  "172.31.255.255",
  "192.0.0.0",
  "192.0.0.192",
  "192.0.0.255",
  "192.0.2.0",
  "192.0.2.255",
  "192.88.99.1",
  "192.168.0.0",
  "192.168.255.255",
  "198.18.0.0",
  "198.19.255.255",
  "198.51.100.7",
  "203.0.113.7",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "100.100.100.200",
  "::",
  "::1",
  "::2",
  "100::1",
  "5f00::1",
  "fc00::",
  "fd00:ec2::254",
  "fdff:ffff::1",
  "fe80::",
  "fe80::1",
  "febf:ffff::1",
  "fec0::1",
  "ff00::",
  "ff02::1",
  "ffff::1",
  "2001:db8::1",
  "3fff::1",
  "3fff:fff::1",
  // Mapped, compatible, translated, NAT64 (also with a custom prefix), 6to4, Teredo.
  "::ffff:127.0.0.1",
  "::ffff:10.0.0.1",
  "::ffff:a9fe:a9fe",
  "0:0:0:0:0:ffff:192.168.1.1",
  "::127.0.0.1",
  "::10.0.0.1",
  "::8.8.8.8",
  "::ffff:0:127.0.0.1",
  "::ffff:0.0.0.0",
  "::ffff:0.0.0.1",
  "64:ff9b::127.0.0.1",
  "64:ff9b::10.0.0.1",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b::0.0.0.0",
  "64:ff9b:1::10.0.0.1",
  "64:ff9b:1::8.8.8.8",
  "2002:7f00:1::",
  "2002:a00:1::1",
  "2002:808:808::1",
  "2001::7f00:1",
  "2001:0:4136:e378:8000:63bf:f5ff:fffe",
  "2001:1ff:ffff::1",
];

const PASSED: readonly string[] = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.0",
  "168.63.129.15",
  "168.63.129.17",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2001:200::1",
  "2001:db7::1",
  "2001:db9::1",
  "2003::1",
  "3ffe::1",
  "3fff:1000::1",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
];

const LITERALS: readonly string[] = [
  "http://127.1/",
  "http://2130706433/",
  "http://0x7f000001/",
  "http://0x7f.1/",
  "http://0177.0.0.1/",
  "http://017700000001/",
  "http://0/",
  "http://127.0.0.1./",
  "http://①②⑦.⓪.⓪.①/",
  "http://１２７.0.0.1/",
  "http://%31%32%37.0.0.1/",
  "http:127.0.0.1",
  "http:\\\\127.0.0.1\\",
  "http://0xa9fea9fe/",
  "http://[::ffff:7f00:1]/",
  "http://[0:0:0:0:0:0:0:1]/",
  "http://[::FFFF:127.0.0.1]:80/",
];

describe("the addresses that a request may go to", () => {
  const connect = vi.spyOn(Socket.prototype, "connect");
  afterEach(() => connect.mockClear());
  afterAll(() => connect.mockRestore());

  const at = (...addresses: string[]) =>
    createGuard({
      resolve: async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    });
  const inUrl = (address: string) => `http://${address.includes(":") ? `[${address}]` : address}/`;

  it.each(REFUSED)("include no %s by name: refused before a connection", async (address) => {
    const error = await failure(sendSigned(plain("http://name.test/secret?token=1"), at(address)));
    expect(error).toMatchObject({ code: "FORBIDDEN", field: "url" });
    expect(error.message).toMatch(
      /^url: "name\.test" resolves to an? .+; nothing was sent\. Use a public address/,
    );
    expect(error.message).not.toContain(address.length > 6 ? address : "token");
    expect(connect).not.toHaveBeenCalled();
  });

  it.each([...REFUSED.map(inUrl), ...LITERALS])(
    "do not include %s: refused before a connection",
    async (url) => {
      const resolve = vi.fn();
      const error = await failure(sendSigned(plain(url), createGuard({ resolve })));
      expect(error.code).toBe("FORBIDDEN");
      expect(resolve).not.toHaveBeenCalled();
      expect(connect).not.toHaveBeenCalled();
    },
  );

  it.each(["localhost", "LOCALHOST", "localhost."])(
    "do not include %s, as this machine resolves it",
    async (host) => {
      const error = await failure(sendSigned(plain(`http://${host}/`), createGuard()));
      expect(["FORBIDDEN", "HTTP_UNREACHABLE"]).toContain(error.code);
      expect(connect).not.toHaveBeenCalled();
    },
  );

  it.each(PASSED)("include the public %s", async (address) => {
    const passed = [{ address, family: address.includes(":") ? 6 : 4 }];
    expect(await at(address)(new URL("http://name.test/"))).toEqual(passed);
    expect(await createGuard()(new URL(inUrl(address)))).toHaveLength(1);
  });

  it.each([
    ["a public and a private address", ["8.8.8.8", "10.0.0.1"]],
    ["an address with a zone", ["fe80::1%eth0"]],
    ["something that is no address", ["8.8.8.8 "]],
  ])("do not include a name at %s", async (_, addresses) => {
    expect((await failure(at(...addresses)(new URL("http://name.test/")))).name).toBe("CarillonError");
  });

  it("do not include a name without an address", async () => {
    expect((await failure(sendSigned(plain("http://name.test/"), at()))).code).toBe("HTTP_UNREACHABLE");
  });

  describe("with a server that listens", () => {
    let target: Target;
    beforeAll(async () => {
      target = await Target.open();
    });
    afterAll(() => target.close());

    it("receives the request without the check, as a positive control", async () => {
      const url = `http://name.test:${target.port}/`;
      expect((await sendSigned(plain(url), unguarded)).body).toBe("done");
      expect(connect).toHaveBeenCalledTimes(1);
      expect(target.connections).toBe(1);
    });

    it("sees no connection with the check", async () => {
      const before = target.connections;
      for (const host of ["127.0.0.1", "127.1", "0x7f000001", "[::ffff:127.0.0.1]", "localhost"]) {
        await failure(sendSigned(plain(`http://${host}:${target.port}/`), createGuard()));
      }
      expect(target.connections).toBe(before);
    });
  });

  describe("the allow list", () => {
    const passes = async (allow: string[], url: string, address = "10.1.2.3") => {
      const family = address.includes(":") ? 6 : 4;
      const guard = createGuard({ allow, resolve: async () => [{ address, family }] });
      return guard(new URL(url)).then(
        () => true,
        () => false,
      );
    };

    it.each([
      ["10.1.0.0/16", "http://name.test/"],
      ["10.1.2.3", "http://name.test:99/"],
      ["10.1.2.3:80", "http://name.test/"],
      ["10.1.2.3:443", "https://name.test/"],
      ["10.1.2.3:8080", "http://name.test:8080/"],
      ["name.test", "http://name.test:99/"],
      ["Name.Test:8080", "http://NAME.test:8080/"],
      ["0.0.0.0/0", "http://name.test/"],
      ["10.1.2.3/32", "http://10.1.2.3/"],
      ["10.1.2.3", "http://[::ffff:10.1.2.3]/"],
    ])("%s lets %s pass", async (entry, url) => {
      expect(await passes([entry], url)).toBe(true);
      expect(await passes([], url)).toBe(false);
    });

    it.each([
      ["10.2.0.0/16", "http://name.test/"],
      ["10.1.2.3:8080", "http://name.test/"],
      ["10.1.2.3:80", "https://name.test/"],
      ["name.test:8080", "http://name.test/"],
      ["name.test", "http://a.name.test/"],
      ["name.test", "http://10.1.2.3/"],
      ["test", "http://name.test/"],
      ["fd00::/8", "http://name.test/"],
      ["::/0", "http://name.test/"],
    ])("%s does not let %s pass", async (entry, url) => {
      expect(await passes([entry], url)).toBe(false);
    });

    it("knows IPv6", async () => {
      expect(await passes(["fd00::/8"], "http://name.test/", "fd12::1")).toBe(true);
      expect(await passes(["[fd12::1]:80"], "http://name.test/", "fd12::1")).toBe(true);
      expect(await passes(["FD12:0::1"], "http://[fd12::1]/")).toBe(true);
      expect(await passes(["[fd12::1]:81"], "http://name.test/", "fd12::1")).toBe(false);
      expect(await passes(["0.0.0.0/0"], "http://name.test/", "fd12::1")).toBe(false);
    });

    it.each([
      "",
      "10.0.0.0/33",
      "10.0.0.0/",
      "10.0.0.0/8/8",
      "name/8",
      "fd00::/129",
      "*.test",
      "name:0",
      "name:65536",
    ])("%j is no entry", (entry) => {
      expect(() => createGuard({ allow: ["10.0.0.0/8", entry] })).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION", field: "allow[1]" }),
      );
    });
    it.each(["http://name", "a b", "user@name", "name:http", "[fd00::1", "fe80::1%eth0", "name?x"])(
      "%j is no entry",
      (entry) => {
        expect(() => createGuard({ allow: [entry] })).toThrow(
          expect.objectContaining({ code: "INVALID_OPTION" }),
        );
      },
    );
  });
});
