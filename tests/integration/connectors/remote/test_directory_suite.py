# ruff: noqa: F401 - pytest runs the imported tests with the fixtures of this folder
"""The tests of the directory connector, on an SFTP server and in a bucket.

Left out are tests of what only a disk has (events, mounts, links, permissions, system calls), and of the words for a path.
"""

from tests.integration.connectors.directory.test_directory_after import (
    test_a_deleted_file_is_deleted_once,
    test_a_file_that_changed_after_it_was_read_is_not_archived,
    test_a_kept_file_is_not_read_again_until_it_changes,
    test_an_archived_file_keeps_its_sub_folder_and_overwrites_nothing,
)
from tests.integration.connectors.directory.test_directory_listing import (
    test_files_that_match_no_pattern_are_counted_without_companions_and_hidden_files,
    test_patterns_ignore_case_unless_configured_otherwise,
    test_temporary_names_and_objects_that_are_no_files_are_ignored,
)
from tests.integration.connectors.directory.test_directory_reading import (
    test_a_missing_file_has_no_batches,
    test_changed_content_is_read_whole,
    test_ndjson_is_recognised_by_its_suffix_or_configured,
)
from tests.integration.connectors.directory.test_files_together import (
    test_a_bad_file_is_rejected_alone,
    test_files_with_numbered_names_do_not_overwrite_each_other,
)
from tests.integration.connectors.directory.test_other_pipelines import (
    test_a_file_that_another_pipeline_reads_is_not_removed_until_the_configuration_changes,
    test_an_unreadable_file_that_another_pipeline_reads_stays,
    test_files_that_only_another_pipeline_reads_are_not_counted,
    test_nothing_is_written_where_another_pipeline_would_read_it,
)
from tests.integration.connectors.directory.test_readiness import (
    test_a_checksum_in_any_common_form_makes_a_file_ready,
    test_a_group_is_archived_as_a_whole_even_after_a_restart,
    test_a_kept_group_is_read_whole_when_one_file_changes,
    test_a_manifest_makes_its_files_ready_and_is_archived_with_the_last,
    test_a_marker_makes_a_file_ready_and_is_not_read_itself,
    test_a_trailer_has_the_number_of_records_and_is_no_record,
    test_a_truncated_file_waits_until_it_is_complete_or_its_time_has_expired,
    test_a_wrong_checksum_rejects_the_file_until_it_or_the_checksum_changes,
    test_a_wrong_hash_in_a_manifest_rejects_that_file_and_delays_the_others,
    test_all_rules_must_be_met_and_companions_are_archived_with_their_file,
    test_an_empty_file_waits_and_is_then_rejected_until_it_has_content,
    test_parts_are_read_together_and_in_order,
    test_rules_are_evaluated_only_for_stable_files,
)
from tests.integration.connectors.directory.test_receipts import (
    test_a_file_that_only_the_mapping_rejects_is_kept_because_the_mapping_may_be_wrong,
    test_a_marker_is_deleted_together_with_its_file,
    test_a_receipt_lists_the_first_rejected_rows_and_counts_the_others,
    test_a_rejection_by_the_service_is_in_the_receipt_with_its_message,
    test_an_unreadable_file_is_kept_if_files_are_kept,
    test_an_unreadable_file_is_moved_to_its_folder_with_its_reason,
    test_each_reading_has_its_own_receipt_with_its_changes,
    test_receipts_and_reasons_are_never_read_as_data,
    test_receipts_can_be_written_to_another_folder_or_disabled,
    test_unreadable_files_can_be_moved_although_acknowledged_ones_are_deleted,
)
from tests.integration.connectors.directory.test_rejected_rows import (
    test_an_entry_that_the_service_rejected_can_be_corrected_as_a_row,
    test_corrected_rows_are_applied_alone_and_uncorrected_ones_are_rejected_again,
    test_kept_files_have_quarantine_and_receipts_if_configured,
    test_unchanged_rejected_rows_that_are_dropped_again_change_nothing,
)
from tests.integration.connectors.directory.test_waiting_files import test_a_file_that_was_read_no_longer_waits
