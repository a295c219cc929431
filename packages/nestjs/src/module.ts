import { CarillonError, Client } from "@carillon/sdk";
import { Inject, Module } from "@nestjs/common";
import { DiscoveryModule, DiscoveryService } from "@nestjs/core";
import { Carillon } from "./carillon.js";
import { TaskDiscovery } from "./discovery.js";
import { CarillonHealthIndicator } from "./health.js";
import { type CarillonOptions, ConfigurableModuleClass, KIT, type Kit, OPTIONS } from "./options.js";

/**
 * Tasks, a client, a node and a worker for a Nest app. Import it once, in the root module; all modules can inject `Client`.
 *
 * @example
 * \@Module({ imports: [CarillonModule.forRoot({ connection: process.env.REDIS_URL, queue: "billing" })] })
 * export class AppModule {}
 */
@Module({
  imports: [DiscoveryModule],
  providers: [
    { provide: KIT, useValue: undefined },
    {
      provide: Client,
      useFactory: ({ connection, namespace, client }: CarillonOptions, kit: Kit | undefined) =>
        kit?.client ?? new Client({ ...client, connection, namespace }),
      inject: [OPTIONS, { token: KIT, optional: true }],
    },
    TaskDiscovery,
    Carillon,
    CarillonHealthIndicator,
  ],
  exports: [Client, Carillon, CarillonHealthIndicator],
})
export class CarillonModule extends ConfigurableModuleClass {
  /** @throws `INVALID_OPTION` */
  constructor(@Inject(DiscoveryService) discovery: DiscoveryService) {
    super();
    const all = discovery.getProviders().filter(({ token }) => token === Carillon);
    if (all.length > 1) {
      throw new CarillonError("INVALID_OPTION", "CarillonModule is imported more than once.", {
        remedy: "Import it in the root module only: it is global.",
      });
    }
    const [own] = all;
    if (own?.isDependencyTreeStatic() === false) {
      throw new CarillonError(
        "INVALID_OPTION",
        "forRootAsync injects a provider of the scope of a request.",
        {
          field: "inject",
          remedy: "Give it providers of the default scope: Nest would start neither node nor worker.",
        },
      );
    }
    // Nest destroys providers by distance from the root, nearest first: handlers end before the services that they use.
    if (own?.host) own.host.distance = 0;
  }
}
