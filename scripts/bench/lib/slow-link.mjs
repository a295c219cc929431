// A TCP proxy that forwards everything with a delay, like a Redis that is further away.
import { connect, createServer } from "node:net";

/** @param {string} url of the Redis @param {number} oneWay ms in each direction */
export async function slowLink(url, oneWay) {
  const { hostname, port } = new URL(url);
  const sockets = new Set();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const later = (socket) => (chunk) => setTimeout(() => socket.writable && socket.write(chunk), oneWay);
    near.setNoDelay(true).on("data", later(far));
    far.setNoDelay(true).on("data", later(near));
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          sockets.delete(socket);
          other.destroy();
        });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `redis://127.0.0.1:${address.port}`,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
