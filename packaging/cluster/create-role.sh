#!/bin/sh
# Creates the role and the database of the nodes, when the container of PostgreSQL starts for the first time.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$STEWARD_PASSWORD" --username postgres <<'SQL'
CREATE ROLE steward LOGIN PASSWORD :'password';
CREATE DATABASE steward OWNER steward;
SQL
