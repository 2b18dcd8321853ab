"""Whether an outside judge's report on the edge is good: nothing above "low", and all that it was asked for was looked at.

    judge.py testssl REPORT | judge.py sslyze REPORT
"""

import json
import sys

# What testssl.sh could not look at on this machine, of which nothing is the edge's.
UNSEEN = {
    "engine_problem",  # the local openssl has no GOST
    "sessionresumption_ticket",  # its look at TLS 1.2's own tickets breaks off at a server that gives none
    "scanTime",
}
# Rows that a whole report has, each with what must stand in it.
OLD = {"SSLv2": "not offered", "SSLv3": "not offered", "TLS1": "not offered", "TLS1_1": "not offered", "RC4": "not vulnerable",
       "SWEET32": "not vulnerable", "LUCKY13": "not vulnerable", "secure_client_renego": "not vulnerable",
       "TLS1_2": "offered", "TLS1_3": "offered with final"}


def testssl(report):
    rows = {row["id"]: row for row in report}
    bad = [row for row in report if row["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL")]
    bad += [row for row in report if row["severity"] == "WARN" and row["id"] not in UNSEEN]
    bad += [rows.get(id_, {"id": id_, "finding": "not looked at"}) for id_, wanted in OLD.items() if wanted not in rows.get(id_, {}).get("finding", "")]
    return [f"{row['id']}: {row['finding']}" for row in bad]


def sslyze(report):
    (server,) = report["server_scan_results"]
    if server["scan_status"] != "COMPLETED":
        return [f"the scan is {server['scan_status']}"]
    found = {name: part["result"] for name, part in server["scan_result"].items()}
    bad = [f"{name}: {part['error_reason']}" for name, part in server["scan_result"].items() if part["status"] == "ERROR"]
    for name in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"):
        bad += [f"{name}: {suite['cipher_suite']['name']}" for suite in found[f"{name}_cipher_suites"]["accepted_cipher_suites"]]
    for name in ("tls_1_2", "tls_1_3"):
        suites = [suite["cipher_suite"]["name"] for suite in found[f"{name}_cipher_suites"]["accepted_cipher_suites"]]
        bad += [] if suites else [f"{name}: nothing is offered"]
        bad += [f"{name}: {suite}" for suite in suites if "_CBC_" in suite or "RC4" in suite or "_RSA_WITH" in suite.replace("ECDHE_RSA", "")]
    renegotiation = found["session_renegotiation"]
    if renegotiation["is_vulnerable_to_client_renegotiation_dos"] or not renegotiation["supports_secure_renegotiation"]:
        bad.append(f"renegotiation: {renegotiation}")
    for deployment in found["certificate_info"]["certificate_deployments"]:
        trusted = [path["trust_store"]["name"] for path in deployment["path_validation_results"] if path["was_validation_successful"]]
        if "Supplied CA file" not in trusted:
            bad.append(f"the certificate is not trusted by way of the file that was given, only by {trusted}")
    flaws = {"heartbleed": "is_vulnerable_to_heartbleed", "openssl_ccs_injection": "is_vulnerable_to_ccs_injection", "tls_compression": "supports_compression"}
    bad += [f"{name}: {found[name]}" for name, flaw in flaws.items() if found[name][flaw]]
    return bad


def main():
    judge = {"testssl": testssl, "sslyze": sslyze}[sys.argv[1]]
    with open(sys.argv[2]) as report:
        bad = judge(json.load(report))
    if bad:
        sys.exit("\n".join([f"tls: {sys.argv[1]} finds:", *bad]))


main()
