import { type TestKit, type TestKitOptions, testKit } from "@carillon/testing";
import { KIT } from "./options.js";

/** `TestingModuleBuilder` of `@nestjs/testing`. */
interface Builder<Module> {
  overrideProvider(token: unknown): { useValue(value: unknown): Builder<Module> };
  compile(): Promise<Module>;
}

/**
 * An app whose tasks run in virtual time, on a real Redis that ends with it. The module's `connection` is not used.
 *
 * @example
 * const { kit, module, close } = await CarillonTestingModule.open(Test.createTestingModule({ imports: [AppModule] }));
 * await module.init(); // puts the tasks
 * await kit.advance("1 day");
 * await kit.expect("nightly").fired(1).outcome("succeeded");
 * await close();
 */
export class CarillonTestingModule<Module extends { close(): Promise<void> }> {
  private constructor(
    readonly kit: TestKit,
    /** Compiled; `init` it, or make an app with HTTP of it. */
    readonly module: Module,
  ) {}

  /** @throws as `testKit`, and what `compile` throws */
  static async open<Module extends { close(): Promise<void> }>(
    builder: Builder<Module>,
    options: Omit<TestKitOptions, "types" | "worker"> = {},
  ): Promise<CarillonTestingModule<Module>> {
    const kit = await testKit({ ...options, worker: false });
    try {
      return new CarillonTestingModule(kit, await builder.overrideProvider(KIT).useValue(kit).compile());
    } catch (error) {
      await kit.close();
      throw error;
    }
  }

  /** Closes the app and the kit. @throws the failure of an expectation that was not awaited */
  close = async (): Promise<void> => {
    await this.module.close();
    await this.kit.close();
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
