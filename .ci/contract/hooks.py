"""What schemathesis has to know of the service that its OpenAPI document cannot tell."""

import json
import os
import uuid

import schemathesis

# What the run stands on: the first organization, its project, its owner and the key that is used.
GROUND = {"@current", "@me", *os.environ["STEWARD_GROUND"].split()}

# Which operations take it away.
REMOVING = {
    "organizations_destroy",
    "organizations_projects_destroy",
    "projects_destroy",
    "members_destroy",
    "personal_api_keys_destroy",
    "personal_api_keys_partial_update",
    "personal_api_keys_roll_create",
}

# Of a switch that shuts the run's key out of its organization.
SHUTTING_OUT = "members_can_use_personal_api_keys"

# Of a member that takes one of six hundred names, which the document does not list: any text stands for this one.
TIME_ZONE = "timezone"

# What is told of a value in another form: in a condition, of another type, or a number as a text.
LENIENT = ("`If-", "ncorrect type", "violates `type`", "sample_rate: Value not matching")

# Refusals that a schema could have told: they never meet what it allows.
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
# Of members that are required where another one is of a kind or missing.
REQUIRED_BY_OTHERS = ("organization_member", "__id")
TOLD_BY_TYPE = {
    "A valid integer is required.",
    "A valid number is required.",
    "Must be a valid boolean.",
    "Not a valid string.",
}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Keeps the ground that the run stands on, and names a time zone that there is."""
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
    """Lets go what is as it should be, although the document does not tell it."""
    if failure.code == "ST201":
        # A condition that is none is met by no version: that is a refusal too.
        return response.status_code != 412 and not is_read_leniently(case, failure.message)
    if failure.code == "ST202":
        return is_told_by_schema(response)
    # Dashboards are never deleted: the operation is there to say so, and is none that `Allow` names.
    return failure.code != "ST205" or not case.operation.path.endswith("/dashboards/{id}/")


def is_read_leniently(case, message):
    """Whether a value was taken in another form than the document asks for, as PostHog takes it: "5" for 5, "yes" for
    true, and of a query or a condition whatever is none for none. The page of an invite is shown whatever its link says."""
    return case.method == "GET" or any(form in message for form in LENIENT)


def is_told_by_schema(response):
    """Whether a request that the document allows was refused for what a schema can tell, and not for what is there."""
    if response.status_code != 400:
        return response.status_code not in (405, 412, 422)
    refusal = json.loads(response.content)
    if refusal["code"] == "required" and refusal["attr"].endswith(REQUIRED_BY_OTHERS):
        return False
    return refusal["code"] in TOLD_BY_SCHEMA or refusal["detail"] in TOLD_BY_TYPE
