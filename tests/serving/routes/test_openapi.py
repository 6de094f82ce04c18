"""The OpenAPI document, taken at its word: requests made up from it are answered as it says, and never by 5xx.

Half of them are made to break its rules, and none of those may be taken for good.
"""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from regarde.serving.http.limits import Limits
from regarde.serving.routes.openapi import document
from tests.serving.conftest import Running

REJECTION = negative_data_rejection
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    REJECTION,
]
OPERATIONS = [(path, method) for path, methods in document(Limits())["paths"].items() for method in methods]
ASKING = [(path, method) for path, method in OPERATIONS if method == "post"]
ODD = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True}


@pytest.fixture(scope="session")
def described(libre: Running) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{libre.url}/openapi.json")


def holds(described: schemathesis.BaseSchema, path: str, method: str, mode: GenerationMode, examples: int) -> None:
    operation = described[path][method]

    @settings(max_examples=examples, phases=[Phase.explicit, Phase.generate], **ODD)
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered(case: schemathesis.Case) -> None:
        response = case.call()
        large = response.status_code == 413  # a good reason, of which the check does not know
        case.validate_response(response, checks=[check for check in CHECKS if not large or check is not REJECTION])

    answered()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_requests_by_the_document_are_answered_by_the_document(
    described: schemathesis.BaseSchema, path: str, method: str
) -> None:
    holds(described, path, method, GenerationMode.POSITIVE, 12 if method == "post" else 1)


@pytest.mark.parametrize(("path", "method"), ASKING)
def test_requests_against_the_document_are_refused(described: schemathesis.BaseSchema, path: str, method: str) -> None:
    holds(described, path, method, GenerationMode.NEGATIVE, 12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(("path", "method"), ASKING)
def test_the_document_holds_a_thousand_times(
    described: schemathesis.BaseSchema, path: str, method: str, mode: GenerationMode
) -> None:
    holds(described, path, method, mode, 1000)
