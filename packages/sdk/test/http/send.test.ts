import { getEventListeners, once } from "node:events";
import http from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { createGuard, sendSigned, verifySignature } from "../../src/http/index.js";
import { failure, KEY, plain, Target, unguarded } from "./bench.js";
import { cert } from "./certificate.js";

const LOCAL = [{ address: "127.0.0.1", family: 4 }];

describe("sending a request", () => {
  afterEach(() => void vi.unstubAllEnvs());
  const open = async (...given: Parameters<typeof Target.open>) => (await Target.open(...given)).ofTest();
  /** A raw server: `speak` writes the answer, HTTP or not. */
  async function raw(speak: (socket: Socket) => void): Promise<number> {
    const sockets = new Set<Socket>();
    const server: Server = createTcpServer((socket) => {
      sockets.add(socket.on("error", () => {}));
      socket.once("data", () => speak(socket));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  }

  it("sends method, path, headers and body, and closes the connection", async () => {
    const target = await open((_, response) => response.writeHead(201, { "X-Request-Id": "7" }).end("made"));
    const response = await sendSigned(
      plain(`${target.url}a/b?c=d#e`, { method: "PUT", headers: { "X-A": "b" }, body: "{€}", keys: [KEY] }),
      createGuard({ allow: [target.host] }),
    );
    expect(response).toMatchObject({ status: 201, body: "made", cut: false });
    expect(response.headers["x-request-id"]).toBe("7");
    const [got] = target.received;
    expect(got).toMatchObject({ method: "PUT", url: "/a/b?c=d", body: "{€}" });
    expect(Object.keys(got?.headers ?? {}).sort()).toEqual(
      ["accept-encoding", "carillon-signature", "connection", "content-length", "host", "x-a"].sort(),
    );
    expect(got?.headers).toMatchObject({ connection: "close", "content-length": "5", host: target.host });
    expect(verifySignature("{€}", got?.headers["carillon-signature"], KEY)).toBe(true);
  });

  it("has default limits, and refuses invalid ones", async () => {
    const target = await open((_, response) => response.end("x".repeat(65_537)));
    const timers = vi.spyOn(globalThis, "setTimeout");
    const limits = { timeout: undefined, maxResponseBytes: undefined };
    const answer = await sendSigned({ method: "GET", url: target.url, headers: {}, ...limits }, unguarded);
    expect(timers.mock.calls.map(([, ms]) => ms)).toContain(30_000);
    timers.mockRestore();
    expect(answer).toMatchObject({ status: 200, body: "x".repeat(65_536), cut: true });
    for (const wrong of [{ timeout: 0 }, { timeout: Number.NaN }, { maxResponseBytes: -1 }]) {
      const request = plain(target.url, wrong);
      const field = Object.keys(wrong)[0];
      await expect(sendSigned(request, unguarded)).rejects.toMatchObject({ code: "INVALID_OPTION", field });
    }
  });

  it.each(["GET", "HEAD"])("sends no signature without a key, and no body with %s", async (method) => {
    const target = await open();
    await sendSigned(plain(target.url, { method }), unguarded);
    expect(target.received[0]?.headers).toEqual({
      host: target.host,
      connection: "close",
      "accept-encoding": "identity",
    });
  });

  it("resolves the name once, and connects to the address that was checked", async () => {
    const target = await open();
    // A name that no resolver knows: a second resolution would fail.
    const answers = [LOCAL, [{ address: "169.254.169.254", family: 4 }]];
    let asked = 0;
    const guard = createGuard({ allow: [target.host], resolve: async () => answers[asked++] ?? [] });
    const url = `http://rebind.invalid:${target.port}/`;
    expect((await sendSigned(plain(url), guard)).body).toBe("done");
    expect(asked).toBe(1);
    expect(target.received[0]?.headers.host).toBe(`rebind.invalid:${target.port}`);
    expect((await failure(sendSigned(plain(url), guard))).code).toBe("FORBIDDEN");
    expect(target.connections).toBe(1);
  });

  it("tries the next checked address if one cannot be reached", async () => {
    const target = await open();
    const guard = async () => [{ address: "127.0.0.2", family: 4 }, ...LOCAL];
    expect((await sendSigned(plain(`http://two.invalid:${target.port}/`), guard)).body).toBe("done");
  });

  it("does not follow a redirect", async () => {
    const inner = await open();
    const outer = await open((_, response) => response.writeHead(302, { Location: inner.url }).end());
    const response = await sendSigned(plain(outer.url), createGuard({ allow: [outer.host] }));
    expect(response).toMatchObject({ status: 302, headers: { location: inner.url } });
    expect(inner.connections).toBe(0);
  });

  it("uses neither a global agent nor the environment's proxy", async () => {
    const proxy = await open();
    const target = await open();
    const agent = http.globalAgent;
    class Elsewhere extends http.Agent {
      override createConnection(): never {
        throw new Error("the global agent was used");
      }
    }
    http.globalAgent = new Elsewhere();
    for (const name of ["HTTP_PROXY", "http_proxy"]) vi.stubEnv(name, proxy.url);
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    try {
      expect((await sendSigned(plain(target.url), unguarded)).body).toBe("done");
      await expect(
        new Promise((resolve, reject) => http.get(target.url, resolve).on("error", reject)),
      ).rejects.toThrow("the global agent was used");
    } finally {
      http.globalAgent = agent;
    }
    expect(proxy.connections).toBe(0);
  });

  it("checks the URL itself", async () => {
    for (const url of ["ftp://127.0.0.1/", "http://a:b@127.0.0.1/", "no"]) {
      expect((await failure(sendSigned(plain(url), unguarded))).code).toBe("INVALID_PAYLOAD");
    }
  });

  describe("over TLS", () => {
    const resolve = async () => LOCAL;

    it("names the host, and accepts its certificate", async () => {
      let servername: unknown;
      const target = await open((request, response) => {
        servername = (request.socket as TLSSocket & { servername?: string }).servername;
        response.end("done");
      }, true);
      const guard = createGuard({ allow: [target.host], resolve });
      const request = plain(`https://tls.test:${target.port}/`, { ca: cert });
      expect((await sendSigned(request, guard)).body).toBe("done");
      expect(servername).toBe("tls.test");
    });

    it.each([
      ["another name's certificate", "https://other.test", cert, "ERR_TLS_CERT_ALTNAME_INVALID"],
      [
        "an address that the certificate does not name",
        "https://127.0.0.1",
        cert,
        "ERR_TLS_CERT_ALTNAME_INVALID",
      ],
      ["an unknown authority", "https://tls.test", undefined, "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ])("refuses %s before anything is sent, whatever the environment says", async (_, origin, ca, code) => {
      const target = await open(undefined, true);
      vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
      const guard = createGuard({ allow: [target.host], resolve });
      const error = await failure(sendSigned(plain(`${origin}:${target.port}/`, { ca }), guard));
      expect(error.code).toBe("HTTP_UNREACHABLE");
      expect(error.message).toContain(code);
      expect(target.received).toEqual([]);
    });
  });

  describe("an answer's body", () => {
    it("is read up to the limit, and no character is cut in two", async () => {
      const target = await open((_, response) => response.end("aé€"));
      const read = async (maxResponseBytes: number) => {
        const { body, cut } = await sendSigned(plain(target.url, { maxResponseBytes }), unguarded);
        return [body, cut];
      };
      expect(await read(6)).toEqual(["aé€", false]);
      expect(await read(5)).toEqual(["aé", true]);
      expect(await read(2)).toEqual(["a", true]);
      expect(await read(0)).toEqual(["", true]);
    });

    it("is marked as cut if the limit falls between two pieces", async () => {
      const target = await open(async (_, response) => {
        response.write("whole");
        // Server and client share this process: after some turns the answer has been read.
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        response.end("more");
      });
      const response = await sendSigned(plain(target.url, { maxResponseBytes: 5 }), unguarded);
      expect(response).toMatchObject({ body: "whole", cut: true });
    });

    it("may be endless: the connection is closed", async () => {
      const { promise: over, resolve: ended } = gate();
      const target = await open((_, response) => {
        const more = () => {
          while (response.write("x".repeat(10_000)));
        };
        response.on("drain", more).on("close", ended);
        more();
      });
      const response = await sendSigned(plain(target.url), unguarded);
      expect(response).toMatchObject({ cut: true, body: "x".repeat(1_000) });
      await over;
    });

    it("that breaks off counts as no answer", async () => {
      const port = await raw((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"));
      const error = await failure(sendSigned(plain(`http://127.0.0.1:${port}/`), unguarded));
      expect(error).toMatchObject({
        code: "HTTP_UNREACHABLE",
        message: expect.stringContaining("ECONNRESET"),
      });
    });
  });

  it.each([
    ["is not HTTP", "220 mail.test ESMTP\r\n", /HPE_/],
    [
      "switches protocols unasked",
      "HTTP/1.1 101 Hm\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
      /no answer/,
    ],
    ["has too many headers", `HTTP/1.1 200 OK\r\n${"X-A: b\r\n".repeat(10_000)}\r\n`, /HPE_HEADER_OVERFLOW/],
  ])("a server that %s is not reached", async (_, answer, why) => {
    const port = await raw((socket) => socket.write(answer));
    const error = await failure(sendSigned(plain(`http://127.0.0.1:${port}/`), unguarded));
    expect(error).toMatchObject({ name: "HttpError", code: "HTTP_UNREACHABLE" });
    expect(error.message).toMatch(why);
  });

  it("a closed port and an unknown name are not reached", async () => {
    const target = await Target.open();
    const { url } = target;
    await target.close();
    expect(await failure(sendSigned(plain(url), unguarded))).toMatchObject({
      code: "HTTP_UNREACHABLE",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    const unknown = async () => {
      throw Object.assign(new Error("getaddrinfo ENOTFOUND secret"), { code: "ENOTFOUND" });
    };
    const error = await failure(sendSigned(plain("http://no.invalid/"), createGuard({ resolve: unknown })));
    expect(error.message).toBe("no.invalid could not be reached (ENOTFOUND).");
  });

  describe("gives up", () => {
    const never = () => new Promise<never>(() => {});
    const silent = () => {};
    const begun = (_: unknown, response: http.ServerResponse) => void response.writeHead(200).write("a");

    it.each([
      ["the name is not resolved", never, silent],
      ["no answer comes", unguarded, silent],
      ["the answer does not end", unguarded, begun],
    ])("in time, if %s", async (_, guard, answer) => {
      const target = await open(answer);
      const error = await failure(sendSigned(plain(target.url, { timeout: 50 }), guard));
      expect(error).toMatchObject({ code: "HTTP_TIMEOUT" });
      expect(error.message).toBe(`${target.host} did not answer within 50 ms.`);
    });

    it("on the signal, and closes the connection", async () => {
      const end = new AbortController();
      const { promise: over, resolve: closed } = gate();
      const target = await open((_, response) => {
        response.on("close", closed);
        end.abort("the job's lock was lost");
      });
      const error = await failure(sendSigned(plain(target.url, { signal: end.signal }), unguarded));
      expect(error.code).toBe("HTTP_ABORTED");
      await over;
    });

    it("before anything is sent, if the signal is already aborted", async () => {
      const target = await open();
      for (const guard of [unguarded, never]) {
        const request = plain(target.url, { signal: AbortSignal.abort() });
        expect((await failure(sendSigned(request, guard))).code).toBe("HTTP_ABORTED");
      }
      expect(target.connections).toBe(0);
    });

    it("without leaving a timer, or a listener on the signal", async () => {
      const { signal } = new AbortController();
      const target = await open();
      // This process has other timers too; an unusual limit identifies the one of the request.
      const timeout = 12_345;
      const [set, cleared] = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(globalThis, "clearTimeout")];
      onTestFinished(() => void vi.restoreAllMocks());
      await sendSigned(plain(target.url, { signal, timeout }), unguarded);
      const timers = set.mock.results.filter((_, i) => set.mock.calls[i]?.[1] === timeout);
      expect(timers).toHaveLength(1);
      expect(cleared).toHaveBeenCalledWith(timers[0]?.value);
      expect(getEventListeners(signal, "abort")).toEqual([]);
    });
  });
});
