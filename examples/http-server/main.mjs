import { readEnvironment } from "@carillon/sdk";
import { startServer } from "./server.mjs";

const { server, stop } = await startServer(readEnvironment(), Number(process.env.PORT ?? 8080));
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
console.log(JSON.stringify({ msg: "listening", address: server.address() }));
