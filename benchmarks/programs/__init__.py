"""Programs that each measure one system. They print the result as one line of JSON with `report.report`."""
