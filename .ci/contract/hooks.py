"""Facts about the service that schemathesis needs and that an OpenAPI document cannot express."""

import json
import os
import uuid

import schemathesis

# The objects that the run needs: the first organization, its project, its owner and the key of the run.
GROUND = {"@current", "@me", *os.environ["STEWARD_GROUND"].split()}

# The operations that could delete or change these objects.
REMOVING = {
    "organizations_destroy",
    "organizations_projects_destroy",
    "projects_destroy",
    "members_destroy",
    "personal_api_keys_destroy",
    "personal_api_keys_partial_update",
    "personal_api_keys_roll_create",
}

# A field that could lock the run's key out of its organization.
SHUTTING_OUT = "members_can_use_personal_api_keys"

# A field with about 600 valid names, which the document does not list. Any generated string is replaced by a valid name.
TIME_ZONE = "timezone"

# Parts of the messages about leniently read values: a condition, a value of another type, a number as a string, or a
# template's tile of an unknown type, which is ignored.
LENIENT = (
    "`If-",
    "ncorrect type",
    "violates `type`",
    "sample_rate: Value not matching",
    "/template/properties/tiles/items",
    "template -> tiles -> Array with invalid items: type: ",
)

# Error codes of invalid values that a schema can describe. A request that the schema allows must never get them.
TOLD_BY_SCHEMA = {
    "blank",
    "empty",
    "invalid_choice",
    "max_length",
    "max_value",
    "min_length",
    "min_value",
    "not_a_list",
    "null",
    "parse_error",
    "required",
}
# Fields that are required depending on the value of another field.
REQUIRED_BY_OTHERS = ("organization_member", "__id")
TOLD_BY_TYPE = {
    "A valid integer is required.",
    "A valid number is required.",
    "Must be a valid boolean.",
    "Not a valid string.",
}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Protects the objects that the run needs, and replaces a time zone by a valid one. Deletes for real, because the run
    expects that a deleted object is gone."""
    if case.method == "DELETE" and case.headers:
        case.headers.pop("Dry-Run", None)
    if case.operation.definition.raw.get("operationId") in REMOVING:
        for name, value in case.path_parameters.items():
            if str(value) in GROUND:
                case.path_parameters[name] = str(uuid.UUID(int=7))
    if isinstance(case.body, dict):
        case.body.pop(SHUTTING_OUT, None)
        if isinstance(case.body.get(TIME_ZONE), str):
            case.body[TIME_ZONE] = "Europe/Berlin"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Ignores failures that are correct behaviour of the service. Returns whether the failure is real."""
    if failure.code == "ST201":
        # An invalid condition matches no version, so 412 is the right error.
        return response.status_code != 412 and not is_read_leniently(case, failure.message)
    if failure.code == "ST202":
        return is_told_by_schema(response)
    # DELETE of a dashboard or an insight always fails with 405. The document describes it, but `Allow` does not list it.
    return failure.code != "ST205" or not case.operation.path.endswith(("/dashboards/{id}/", "/insights/{id}/"))


def is_read_leniently(case, message):
    """Whether a value was accepted in another form than the documented one, as in PostHog: "5" for 5, or "yes" for true.
    Invalid limits, offsets and conditions are ignored. The page of an invite ignores the parameters of its link."""
    return case.method == "GET" or any(form in message for form in LENIENT)


def is_told_by_schema(response):
    """Whether a request that the document allows was refused for a reason that a schema can describe."""
    if response.status_code != 400:
        return response.status_code not in (405, 412, 422)
    refusal = json.loads(response.content)
    if refusal["code"] == "required" and refusal["attr"].endswith(REQUIRED_BY_OTHERS):
        return False
    return refusal["code"] in TOLD_BY_SCHEMA or refusal["detail"] in TOLD_BY_TYPE
