import "reflect-metadata";
import { Client } from "@carillon/sdk";
import { Body, Controller, Get, Module, Param, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";

const client = new Client({ connection: process.env.REDIS_URL, namespace: process.env.CARILLON_NAMESPACE });

class Tasks {
  put(input) {
    return client.put(input);
  }

  get(id) {
    return client.get(id);
  }
}
class App {}

// Decorators, applied as TypeScript does.
const of = (method) => [Tasks.prototype, method, Object.getOwnPropertyDescriptor(Tasks.prototype, method)];
Post()(...of("put"));
Body()(Tasks.prototype, "put", 0);
Get(":id")(...of("get"));
Param("id")(Tasks.prototype, "get", 0);
Controller("tasks")(Tasks);
Module({ controllers: [Tasks] })(App);

const app = await NestFactory.create(App, { logger: false });
await app.listen(process.env.PORT);
