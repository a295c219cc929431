import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** A certificate and its private key, as PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

interface Subject {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly extension: Buffer;
}

/** Valid for longer than any test runs. Fixed, so that the clock does not matter. */
const VALID = ["20200101000000Z", "21191231235959Z"] as const;

/**
 * An authority, and certificates that it signs for a server (`localhost`, `127.0.0.1`, `::1`) and a client. Its key is
 * discarded.
 */
export function makeIdentities(): { ca: string; server: Identity; client: Identity } {
  const authority = { name: "Carillon test authority", ...keyPair() };
  const issue = (subject: Subject) => pem("CERTIFICATE", certificate(subject, authority));
  const identity = (name: string, extension: Buffer): Identity => {
    const { publicKey, privateKey } = keyPair();
    const key = privateKey.export({ type: "pkcs8", format: "pem" });
    return { cert: issue({ name, publicKey, extension }), key: `${key}` };
  };
  const names = sequence(
    der(0x82, Buffer.from("localhost")),
    der(0x87, Buffer.from([127, 0, 0, 1])),
    der(0x87, Buffer.concat([Buffer.alloc(15), Buffer.from([1])])),
  );
  return {
    ca: issue({ ...authority, extension: extension(OID.basicConstraints, sequence(der(0x01, TRUE))) }),
    server: identity("localhost", extension(OID.subjectAltName, names)),
    client: identity("carillon test client", extension(OID.extendedKeyUsage, sequence(OID.clientAuth))),
  };
}

function keyPair() {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

/** X.509 version 3, signed with ECDSA and SHA-256 (RFC 5280). */
function certificate(subject: Subject, issuer: { name: string; privateKey: KeyObject }): Buffer {
  const serial = randomBytes(16);
  serial[0] = (Number(serial[0]) & 0x3f) | 0x40; // positive, and no leading zero
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    sequence(OID.ecdsaWithSha256),
    nameOf(issuer.name),
    sequence(...VALID.map((time) => der(0x18, Buffer.from(time)))),
    nameOf(subject.name),
    subject.publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(subject.extension)),
  );
  const signature = sign("sha256", toBeSigned, issuer.privateKey);
  return sequence(toBeSigned, sequence(OID.ecdsaWithSha256), der(0x03, Buffer.from([0]), signature));
}

function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

function sequence(...content: readonly Buffer[]): Buffer {
  return der(0x30, ...content);
}

function nameOf(commonName: string): Buffer {
  return sequence(der(0x31, sequence(OID.commonName, der(0x0c, Buffer.from(commonName)))));
}

function extension(id: Buffer, value: Buffer): Buffer {
  return sequence(id, der(0x01, TRUE), der(0x04, value));
}

function pem(label: string, content: Buffer): string {
  const lines = content.toString("base64").match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

const TRUE = Buffer.from([0xff]);

const OID = {
  commonName: oid("550403"),
  subjectAltName: oid("551d11"),
  basicConstraints: oid("551d13"),
  extendedKeyUsage: oid("551d25"),
  clientAuth: oid("2b06010505070302"),
  ecdsaWithSha256: oid("2a8648ce3d040302"),
};

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}
